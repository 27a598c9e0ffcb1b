"""What librdkafka can't ask of a broker, asked through kafka-python: the only importer of it here.

Invariants:

- Every error leaves as Unavailable (ask again) or ConfigurationError (a person must act); none is an outcome.
- EndTxn goes out as version 3 and nothing else: 5 would fence a live librdkafka producer.
- Nothing here creates a topic or begins a transaction.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, errors
from kafka.admin import ConfigResource
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import CoordinatorType, MetadataRequest
from kafka.protocol.producer.transaction import EndTxnRequest, InitProducerIdRequest
from kafka.structs import TopicPartition as KafkaTopicPartition

from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.kafka.committable import END_TXN_VERSION
from twopc.kafka.reachable import await_reachable
from twopc.protocol.ids import Position, TopicPartition
from twopc.protocol.recovery import BrokerState, Described

log = logging.getLogger(__name__)

# Silent unless the application listens; and at DEBUG it would log its settings, passwords included.
logging.getLogger("kafka").addHandler(logging.NullHandler())
logging.getLogger("kafka.admin.client").setLevel(logging.INFO)
# It warns that its thread had to wait a moment, which beside a busy data loop it has to.
logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)

REQUEST_TIMEOUT_MS = 10_000
EARLIEST, LATEST = -2, -1
_READ_COMMITTED = 1
_FETCH_BYTES = 8_000_000
_FETCH_WAIT_MS = 500
_MAX_TIMEOUT = "transaction.max.timeout.ms"


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as the broker knows it now."""

    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A described transaction, with what it has written to so far."""

    described: Described
    timeout_ms: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """What a group has committed for a partition."""

    position: Position
    metadata: str


class ControlClient:
    """Questions to the brokers of one cluster, and the two requests that settle transactions. Any thread may call."""

    def __init__(self, bootstrap_servers: str, config: Mapping[str, Any]) -> None:
        self._servers = bootstrap_servers
        self._config = dict(config)
        self._lock = threading.Lock()
        self._client: KafkaAdminClient | None = None

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe_transaction(self, transactional_id: str) -> OpenTransaction | None:
        """Return the coordinator's word on an id; None if it doesn't know it."""
        answer = self._run(
            lambda client: client._async_describe_transactions([transactional_id]),
            (CoordinatorType.TRANSACTION, transactional_id),
            none_if=errors.TransactionalIdNotFoundError,
        )
        if answer is None:
            return None
        found = answer[transactional_id]
        state = Described(
            _state(found.state.value), found.producer_id, found.producer_epoch, found.transaction_start_time_ms
        )
        partitions = frozenset(TopicPartition(topic, partition) for topic, partition in found.topic_partitions)
        return OpenTransaction(state, found.transaction_timeout_ms, partitions)

    def list_transactions(self) -> dict[str, BrokerState]:
        """Return every transactional id that any broker remembers, with its state."""
        answers = self._run(lambda client: client._async_list_transactions())
        return {row.transactional_id: _state(row.state.value) for rows in answers.values() for row in rows}

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

    def init_producer_id(self, transactional_id: str, timeout_ms: int) -> None:
        """Take an id over: fences every producer that holds it, and aborts what is open."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
            min_version=3,
            max_version=4,
        )
        self._ask_transaction_coordinator(transactional_id, request)

    def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Return those of the topics that exist; never creates one."""
        wanted = [MetadataRequest.MetadataRequestTopic(name=name, topic_id=None) for name in names]
        if not wanted:
            return {}
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, min_version=10)
        answer = self._run(lambda client: client._manager.send(request))
        found = {}
        for topic in answer.topics:
            error = errors.for_code(topic.error_code)
            if error is errors.NoError:
                found[topic.name] = TopicInfo(str(topic.topic_id), len(topic.partitions))
            elif error not in (errors.UnknownTopicOrPartitionError, errors.InvalidTopicError):
                raise _failure(error(f"topic {topic.name}"), self._servers)
        return found

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        """Return the first offset at or after each timestamp; EARLIEST and LATEST are timestamps too.

        LATEST, and a timestamp after the last record, is the end that a read_committed reader sees.
        """
        if not at:
            return {}
        asked = {KafkaTopicPartition(*partition): when for partition, when in at.items()}
        answer = self._run(lambda client: client._async_list_partition_offsets(asked, _READ_COMMITTED))
        found = {TopicPartition(*partition): row.offset for partition, row in answer.items()}
        beyond = {partition: LATEST for partition, offset in found.items() if offset < 0 and at[partition] >= 0}
        return {partition: Position(offset) for partition, offset in found.items()} | self.offsets(beyond)

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

        data: bytes = self._run(ask)
        return data

    def group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        """Return what the group has committed; what an open transaction holds does not count."""
        asked = {group: [KafkaTopicPartition(*partition) for partition in partitions]}
        answer = self._run(lambda client: client._async_list_group_offsets(asked), (CoordinatorType.GROUP, group))
        return {
            # librdkafka sends the metadata with its terminating NUL.
            TopicPartition(*partition): GroupOffset(Position(row.offset), (row.metadata or "").rstrip("\0"))
            for partition, row in answer[group].items()
            if row.offset >= 0
        }

    def cluster_id(self) -> str:
        """Return the id of the cluster that these brokers belong to, whatever addresses they were named by."""
        return str(self._connected()._manager.cluster.cluster_id)

    def max_transaction_timeout_ms(self) -> int:
        """Return the brokers' transaction.max.timeout.ms."""
        client = self._connected()
        broker = str(client._manager.cluster.brokers()[0].node_id)
        resource = ConfigResource("broker", broker, {_MAX_TIMEOUT: None})
        answer = self._run(lambda client: client._async_describe_configs([resource], False, "all"))
        return int(answer["broker"][broker][_MAX_TIMEOUT]["value"])

    def _ask_transaction_coordinator(self, transactional_id: str, request: Any) -> Any:
        async def ask(client: KafkaAdminClient) -> Any:
            node = await client._find_coordinator_id(transactional_id, CoordinatorType.TRANSACTION)
            answer = await client._manager.send(request, node_id=node)
            error = errors.for_code(answer.error_code)
            if error is not errors.NoError:
                raise error(f"{type(request).__name__} of {transactional_id}")
            return answer

        return self._run(ask, (CoordinatorType.TRANSACTION, transactional_id))

    def _run(
        self,
        ask: Callable[[KafkaAdminClient], Any],
        coordinator: tuple[Any, str] | None = None,
        none_if: type[Exception] | tuple[()] = (),
    ) -> Any:
        client = self._connected()
        try:
            return client._manager.run(ask, client)
        except none_if:
            return None
        except Exception as error:
            # It may have moved to another broker: find it again next time.
            client._manager.cluster._coordinators.pop(coordinator, None)
            raise _failure(error, self._servers) from error

    def _connected(self) -> KafkaAdminClient:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> KafkaAdminClient:
        await_reachable(self._servers)
        try:
            return KafkaAdminClient(
                **self._config,
                bootstrap_servers=self._servers.split(","),
                bootstrap_timeout_ms=REQUEST_TIMEOUT_MS,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                reconnect_backoff_max_ms=1_000,
            )
        except Exception as error:
            spoken = self._config.get("security_protocol", "PLAINTEXT")
            raise _failure(error, f"{self._servers} over {spoken}") from error


def _failure(error: Exception, servers: str) -> TwoPhaseCommitError:
    if isinstance(error, TwoPhaseCommitError):
        return error
    detail = f"{type(error).__name__}: {error}"
    if isinstance(error, (errors.AuthorizationError, errors.SaslAuthenticationFailedError)):
        return ConfigurationError(
            f"the Kafka brokers at {servers} refuse access ({detail}): check credentials and ACLs"
        )
    if isinstance(error, errors.InvalidTransactionTimeoutError):
        return ConfigurationError(f"transaction_timeout_ms is longer than the brokers' {_MAX_TIMEOUT} ({detail})")
    if isinstance(error, (errors.UnsupportedVersionError, errors.KafkaConfigurationError)):
        return ConfigurationError(
            f"the Kafka brokers at {servers} can't be used ({detail}); Kafka 3.0 or newer is needed"
        )
    return Unavailable(f"the Kafka brokers at {servers} gave no answer ({detail})")


def _state(name: str) -> BrokerState:
    try:
        return BrokerState(name)
    except ValueError:
        raise Unavailable(f"a broker reports the transaction state {name!r}, which this version doesn't know") from None
