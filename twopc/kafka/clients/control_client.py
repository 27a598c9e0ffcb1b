"""The client of the control path: requests to brokers that librdkafka's API lacks, sent through kafka-python.

Only this module, `connection`, `leaders` and `topics` use names of kafka-python that begin with an underscore.

Invariants:

- EndTxn goes out as version 3 and nothing else: 5 would fence a live librdkafka producer.
- Nothing here creates a topic or begins a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from twopc.errors import Unavailable
from twopc.kafka.clients.connection import MAX_TIMEOUT, Connection
from twopc.kafka.clients.described_transaction import END_TXN_VERSION, BrokerState, Described
from twopc.kafka.clients.kafka_python import (
    ConfigResource,
    CoordinatorType,
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FetchRequest,
    InitProducerIdRequest,
    KafkaAdminClient,
    KafkaTopicPartition,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    errors,
)
from twopc.kafka.topic_partition import Position, TopicPartition

log = logging.getLogger(__name__)

EARLIEST, LATEST = -2, -1
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_OPERATIONS = {"Read": 3, "Write": 4, "Describe": 8}
_UNKNOWN = {31}
"""The number that stands for operations where a broker does not say."""
_CONSUMER = -1
"""The replica that asks, if a consumer does."""
_FETCH_BYTES = 8_000_000
_FETCH_WAIT_MS = 500


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as a broker knows it now. `leaders` are by partition; -1 where there is none."""

    topic_id: str
    partitions: int
    leaders: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A described transaction, with what it has written to so far."""

    described: Described
    timeout_ms: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, order=True)
class OpenProducer:
    """A producer with a transaction open in a partition, from its offset `first` there on.

    `coordinator_epoch` is that of the transaction coordinator that wrote the producer's last marker there.
    """

    first: Position
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """The offset that a group has committed for a partition; `epoch` is the leader epoch of what it has read last."""

    position: Position
    metadata: str
    epoch: int | None = None


class ControlClient:
    """Questions to the brokers of one cluster, and the two requests that settle transactions. Any thread may call."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, Any]) -> None:
        self.properties = properties
        self._brokers = Connection(bootstrap_servers, properties)

    def close(self) -> None:
        self._brokers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe_transaction(self, transactional_id: str) -> OpenTransaction | None:
        """Return the coordinator's word on an id; None if it doesn't know it."""
        answer = self._brokers.ask(
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            (CoordinatorType.TRANSACTION, transactional_id),
            none_if=errors.TransactionalIdNotFoundError,
            code_of=lambda answer: answer.transaction_states[0].error_code,
        )
        if answer is None:
            return None
        [found] = answer.transaction_states
        state = Described(
            _state(found.transaction_state), found.producer_id, found.producer_epoch, found.transaction_start_time_ms
        )
        partitions = frozenset(
            TopicPartition(topic.topic, partition) for topic in found.topics for partition in topic.partitions
        )
        return OpenTransaction(state, found.transaction_timeout_ms, partitions)

    def list_transactions(self) -> dict[str, BrokerState]:
        """Return every transactional id that any broker remembers, with its state."""
        answers = self._brokers.run(lambda client: client._async_list_transactions())
        return {row.transactional_id: _state(row.state.value) for rows in answers.values() for row in rows}

    def transactional_id(self, producer_id: int) -> str | None:
        """Return the id that a producer has, by its number; None where no broker tells this user."""
        answers = self._brokers.run(lambda client: client._async_list_transactions(producer_id_filters=[producer_id]))
        return next((str(row.transactional_id) for rows in answers.values() for row in rows), None)

    def open_producers(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[OpenProducer]]:
        """Return who has a transaction open in each partition, by what its leader knows, the first that began first."""
        asked = [KafkaTopicPartition(*partition) for partition in partitions]
        answer = self._brokers.run(lambda client: client._async_describe_producers(asked))
        return {
            TopicPartition(*partition): sorted(
                OpenProducer(
                    Position(row.current_transaction_start_offset),
                    row.producer_id,
                    row.producer_epoch,
                    max(row.coordinator_epoch, 0),
                )
                for row in found.active_producers
                if row.current_transaction_start_offset >= 0
            )
            for partition, found in answer.items()
        }

    def end_transaction(
        self, transactional_id: str, producer_id: int, producer_epoch: int, *, commit: bool = True
    ) -> bool:
        """Commit, or abort; return whether the broker said so. A no is not an outcome: ask describe_transaction."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=commit,
            min_version=END_TXN_VERSION,
            max_version=END_TXN_VERSION,
        )
        try:
            self._ask_transaction_coordinator(transactional_id, request)
        except Unavailable as error:
            log.info("EndTxn of %s: %s", transactional_id, error)
            return False
        return True

    def init_producer_id(self, transactional_id: str, timeout_ms: int) -> int:
        """Take an id over: fences every producer that holds it, and aborts what is open.

        Return its epoch: 0 for its first producer, a greater one for all others.
        """
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
            min_version=3,
            max_version=4,
        )
        return int(self._ask_transaction_coordinator(transactional_id, request).producer_epoch)

    def topics(self, names: Iterable[str], node: int | None = None) -> dict[str, TopicInfo]:
        """Return those of the topics that exist, by the word of this broker, or of any; never creates one."""
        wanted = [MetadataRequest.MetadataRequestTopic(name=name, topic_id=None) for name in names]
        if not wanted:
            return {}
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, min_version=10)
        answer = self._brokers.ask(request, node=node)
        found = {}
        for topic in answer.topics:
            error = errors.for_code(topic.error_code)
            if error is errors.NoError:
                leaders = {partition.partition_index: partition.leader_id for partition in topic.partitions}
                by_number = tuple(leaders.get(number, -1) for number in range(len(leaders)))
                found[topic.name] = TopicInfo(str(topic.topic_id), len(topic.partitions), by_number)
            elif error not in (errors.UnknownTopicOrPartitionError, errors.InvalidTopicError):
                raise self._brokers.failure_of(error(f"topic {topic.name!r}"))
        return found

    def settings_of(self, topic: str, names: Sequence[str]) -> dict[str, str | None]:
        """Return what these settings of a topic are; None where the brokers don't let this user see it."""
        resource = ConfigResource("topic", topic, dict.fromkeys(names))
        answer = self._brokers.run(lambda client: client._async_describe_configs([resource], False, "all"))
        found = answer["topic"].get(topic, {})
        return {name: None if name not in found else str(found[name]["value"]) for name in names}

    def topic_names(self) -> list[str]:
        """Return the topics that are there and may be seen, but for Kafka's own."""
        answer = self._brokers.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False, min_version=10))
        return [
            topic.name
            for topic in answer.topics
            if not topic.is_internal and errors.for_code(topic.error_code) is errors.NoError
        ]

    def topic_operations(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return what ACLs allow on those of the topics that exist."""
        wanted = [MetadataRequest.MetadataRequestTopic(name=name, topic_id=None) for name in names]
        request = MetadataRequest(
            topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=True, min_version=10
        )
        answer = self._brokers.ask(request)
        there = [topic for topic in answer.topics if errors.for_code(topic.error_code) is errors.NoError]
        return {topic.name: _operations(topic.authorized_operations) for topic in there}

    def group_operations(self, group: str) -> frozenset[str]:
        """Return what ACLs allow on a consumer group, which need not exist."""
        request = DescribeGroupsRequest(
            groups=[group], include_authorized_operations=True, min_version=3, max_version=5
        )
        asked = (CoordinatorType.GROUP, group)
        # A later version calls a group that nobody has used an error, and says nothing of what is allowed.
        answer = self._brokers.ask(
            request,
            asked,
            none_if=errors.GroupAuthorizationFailedError,
            code_of=lambda answer: answer.groups[0].error_code,
        )
        return frozenset() if answer is None else _operations(answer.groups[0].authorized_operations)

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        """Return the first offset at or after each timestamp; EARLIEST and LATEST are timestamps too.

        LATEST, and a timestamp after the last record, is the end that a read_committed reader sees.
        """
        if not at:
            return {}
        asked = {KafkaTopicPartition(*partition): when for partition, when in at.items()}
        answer = self._brokers.run(lambda client: client._async_list_partition_offsets(asked, _READ_COMMITTED))
        found = {TopicPartition(*partition): row.offset for partition, row in answer.items()}
        beyond = {partition: LATEST for partition, offset in found.items() if offset < 0 and at[partition] >= 0}
        return {partition: Position(offset) for partition, offset in found.items()} | self.offsets(beyond)

    def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Position]:
        """Return the end of each partition, with what open transactions have written there."""
        asked = {KafkaTopicPartition(*partition): LATEST for partition in partitions}
        answer = self._brokers.run(lambda client: client._async_list_partition_offsets(asked, _READ_UNCOMMITTED))
        return {TopicPartition(*partition): Position(row.offset) for partition, row in answer.items()}

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position | None]:
        """Return where each of these leader epochs ends; None of one that the leader doesn't know (KIP-320).

        Nothing of brokers that can't tell. One that is older than all that the leader has ends where those begin.
        """
        if not epochs:
            return {}

        async def ask(client: KafkaAdminClient) -> dict[TopicPartition, Position | None]:
            leaders = await client._async_get_leader_for_partitions(
                {KafkaTopicPartition(*partition) for partition in epochs}
            )
            found: dict[TopicPartition, Position | None] = {}
            for leader, partitions in leaders.items():
                mine = {each: epochs[each] for each in (TopicPartition(*partition) for partition in partitions)}
                try:
                    answer = await client._manager.send(_epoch_request(mine), node_id=leader)
                except errors.UnsupportedVersionError:
                    continue
                found |= _epoch_ends(answer)
            return found

        ends: dict[TopicPartition, Position | None] = self._brokers.run(ask)
        return ends

    def fetch(self, partition: TopicPartition, offset: Position) -> bytes:
        """Return the log from the batch on that holds this offset, as it stands there; empty if nothing is there."""
        topic = FetchRequest.FetchTopic(
            topic=partition.topic,
            partitions=[
                FetchRequest.FetchTopic.FetchPartition(
                    partition=partition.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
                )
            ],
        )
        request = FetchRequest(
            max_wait_ms=_FETCH_WAIT_MS, min_bytes=1, max_bytes=_FETCH_BYTES, topics=[topic], max_version=12
        )

        async def ask(client: KafkaAdminClient) -> bytes:
            leaders = await client._async_get_leader_for_partitions({KafkaTopicPartition(*partition)})
            answer = await client._manager.send(request, node_id=next(iter(leaders)))
            [found] = answer.responses[0].partitions if answer.responses else [answer]
            error = errors.for_code(answer.error_code or found.error_code)
            if error is not errors.NoError:
                raise error(f"fetching {partition} from {offset}")
            return bytes(found.records or b"")

        data: bytes = self._brokers.run(ask)
        return data

    def group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        """Return what the group has committed; what an open transaction holds does not count."""
        asked = {group: [KafkaTopicPartition(*partition) for partition in partitions]}
        answer = self._brokers.run(
            lambda client: client._async_list_group_offsets(asked), (CoordinatorType.GROUP, group)
        )
        return {
            TopicPartition(*partition): _group_offset(row)
            for partition, row in answer[group].items()
            if row.offset >= 0
        }

    def cluster_id(self) -> str:
        """Return the id of the cluster that these brokers belong to, whatever addresses they were named by."""
        return str(self._brokers.client()._manager.cluster.cluster_id)

    def max_transaction_timeout_ms(self) -> int:
        """Return the brokers' transaction.max.timeout.ms."""
        client = self._brokers.client()
        broker = str(client._manager.cluster.brokers()[0].node_id)
        resource = ConfigResource("broker", broker, {MAX_TIMEOUT: None})
        answer = self._brokers.run(lambda client: client._async_describe_configs([resource], False, "all"))
        found = answer["broker"][broker]
        if MAX_TIMEOUT not in found:
            # kafka-python keeps to itself that the brokers refused.
            raise self._brokers.failure_of(errors.ClusterAuthorizationFailedError(f"asked for {MAX_TIMEOUT}"))
        return int(found[MAX_TIMEOUT]["value"])

    def _ask_transaction_coordinator(self, transactional_id: str, request: Any) -> Any:
        asked = (CoordinatorType.TRANSACTION, transactional_id)
        return self._brokers.ask(request, asked, code_of=lambda answer: answer.error_code)


def _group_offset(row: Any) -> GroupOffset:
    epoch = None if row.leader_epoch is None or row.leader_epoch < 0 else row.leader_epoch
    # librdkafka sends the metadata with its terminating NUL.
    return GroupOffset(Position(row.offset), (row.metadata or "").rstrip("\0"), epoch)


def _epoch_request(epochs: Mapping[TopicPartition, int]) -> OffsetForLeaderEpochRequest:
    by_topic: dict[str, list[Any]] = {}
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    for partition, epoch in epochs.items():
        by_topic.setdefault(partition.topic, []).append(
            topic.OffsetForLeaderPartition(partition=partition.partition, current_leader_epoch=-1, leader_epoch=epoch)
        )
    topics = [topic(topic=name, partitions=partitions) for name, partitions in by_topic.items()]
    return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics, min_version=2)


def _epoch_ends(answer: Any) -> dict[TopicPartition, Position | None]:
    found: dict[TopicPartition, Position | None] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            if (error := errors.for_code(partition.error_code)) is not errors.NoError:
                raise error(f"asking for the end of a leader epoch of {topic.topic}[{partition.partition}]")
            known = partition.end_offset >= 0 and partition.leader_epoch >= 0
            found[TopicPartition(topic.topic, partition.partition)] = Position(partition.end_offset) if known else None
    return found


def _operations(numbers: set[int]) -> frozenset[str]:
    if numbers == _UNKNOWN:
        return frozenset(_OPERATIONS)
    return frozenset(name for name, number in _OPERATIONS.items() if number in numbers)


def _state(name: str) -> BrokerState:
    try:
        return BrokerState(name)
    except ValueError:
        raise Unavailable(f"a broker reports the transaction state {name!r}, which this version doesn't know") from None
