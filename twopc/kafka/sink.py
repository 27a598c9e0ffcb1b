"""The Kafka sink: a description that is copied to every subtask, and opens nothing before it is told to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any

from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.kafka.access import copy_with_access
from twopc.kafka.channel import Channel
from twopc.kafka.claim import claim, refuse_successor, successor
from twopc.kafka.client_config import checked_producer_properties
from twopc.kafka.direct import SubtaskClient
from twopc.kafka.grants import WRITE, require_topic_grants
from twopc.kafka.leaders import LeaderClient
from twopc.kafka.lingering import abort_open, fence_earlier, last_attempt, open_attempt
from twopc.kafka.markers import close_committed
from twopc.kafka.outage import leave_to_driver, watched
from twopc.kafka.output import Output, TopicOf
from twopc.kafka.plain import PlainWriter
from twopc.kafka.preflight import bootstrap_servers_of, require_topics, transaction_timeout_ms
from twopc.kafka.resume import Act, act_on_all, settle_all
from twopc.kafka.source import BYTES
from twopc.kafka.transactional import Transaction, TransactionalWriter
from twopc.kafka.writer_config import WriterConfig
from twopc.protocol.facts import Committable
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId, SubtaskIndex, checked_name
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.serde import Serde, checked_serde
from twopc.sink import Outcome, PreCommit, Settled, TwoPhaseCommitSink

SETTLE_BUDGET_SECONDS = 120.0
MARKERS_BUDGET_SECONDS = 30.0
SLOW_COMMIT_SECONDS = 0.5
"""A commit that takes longer may have met brokers that were away, and may have forgotten partitions meanwhile."""

SWEEP_TIMEOUT_MS = 60_000
DRIVER = SubtaskIndex(-1)


class DeliveryGuarantee(Enum):
    """What a reader may rely on. Only the first hides what a crash leaves behind, from read_committed readers."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"
    NONE = "none"


class KafkaSink(TwoPhaseCommitSink[Transaction | None]):
    """Writes records to a topic, or to the topic that a function of the record returns.

    Key, headers and timestamp of a record are kept. `transactional_id_prefix` is the job's name unless given; no two
    jobs on one cluster may share it. `properties` are librdkafka's, for the producers.
    """

    def __init__(
        self,
        topic: TopicOf,
        *,
        key: Serde = BYTES,
        value: Serde = BYTES,
        delivery_guarantee: str | DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
        transactional_id_prefix: str | None = None,
        bootstrap_servers: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        if not topic or not (isinstance(topic, str) or callable(topic)):
            raise ConfigurationError(
                f"KafkaSink needs a topic's name, or a function of a record that returns one, not {topic!r}"
            )
        self.topic = topic
        self.key = checked_serde("key of KafkaSink", key)
        self.value = checked_serde("value of KafkaSink", value)
        self.delivery_guarantee = _guarantee(delivery_guarantee)
        self.transactional_id_prefix = transactional_id_prefix
        if transactional_id_prefix is not None:
            checked_name("transactional_id_prefix", transactional_id_prefix)
        self.bootstrap_servers = bootstrap_servers
        self.properties = checked_producer_properties(properties or {})
        self._client: LeaderClient | None = None
        self._writer: TransactionalWriter | PlainWriter | None = None
        self._swept = AttemptId(0)

    def __getstate__(self) -> dict[str, Any]:
        """Copy the description only."""
        return {**self.__dict__, "_client": None, "_writer": None, "_swept": AttemptId(0)}

    @property
    def topics(self) -> tuple[str, ...]:
        return (self.topic,) if isinstance(self.topic, str) else ()

    def describe(self) -> Mapping[str, Any]:
        return {
            "type": "KafkaSink",
            "topic": self.topic if isinstance(self.topic, str) else getattr(self.topic, "__name__", "a function"),
            "key": self.key,
            "value": self.value,
            "delivery_guarantee": self.delivery_guarantee.value,
        }

    # On a subtask.

    def open(self, context: SubtaskContext) -> None:
        leave_to_driver()
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        self._client = client = SubtaskClient.of(context, servers, self.properties)
        output = Output(self.topic, self.key, self.value, client, client.identity)
        config = self._config(context, context.subtask, client)
        if self._transactional:
            self._writer = TransactionalWriter(config, output, client, client.identity)
        else:
            wait = self.delivery_guarantee is DeliveryGuarantee.AT_LEAST_ONCE
            self._writer = PlainWriter(config, output, client.identity, wait_for_delivery=wait)

    def begin(self) -> Transaction | None:
        return self._writer.begin() if isinstance(self._writer, TransactionalWriter) else None

    def write(self, txn: Transaction | None, batch: Batch) -> int:
        writer = self._writer
        if isinstance(writer, TransactionalWriter) and txn is not None:
            return writer.write(txn, batch)
        assert isinstance(writer, PlainWriter), "open() was not called"
        return writer.write(batch)

    def pre_commit(self, txn: Transaction | None, request: PreCommit) -> Committable | None:
        if isinstance(self._writer, TransactionalWriter) and txn is not None:
            return self._writer.pre_commit(txn, request)
        assert isinstance(self._writer, PlainWriter), "open() was not called"
        self._writer.pre_commit(request.checkpoint_id)
        return None

    def commit(self, committable: Committable, proof: Complete) -> None:
        assert committable.checkpoint_id <= proof.checkpoint_id, "a completion proves earlier checkpoints only"
        assert isinstance(self._writer, TransactionalWriter), "open() was not called"
        began = time.monotonic()
        self._writer.commit(committable)
        if time.monotonic() - began > SLOW_COMMIT_SECONDS:
            assert self._client is not None
            close_committed(self._client, [committable], MARKERS_BUDGET_SECONDS)

    def release(self, completed: CheckpointId) -> None:
        if isinstance(self._writer, TransactionalWriter):
            self._writer.release(completed)

    def abort(self, txn: Transaction | None) -> None:
        if isinstance(self._writer, TransactionalWriter) and txn is not None:
            self._writer.abort(txn)

    def close(self) -> None:
        writer, self._writer = self._writer, None
        client, self._client = self._client, None
        if writer is not None:
            writer.close()
        if client is not None:
            client.close()

    # On the driver.

    def with_access(self, properties: Mapping[str, Any]) -> KafkaSink:
        return copy_with_access(self, properties)

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        return watched(bootstrap_servers_of(self.bootstrap_servers, context.settings), self.properties)

    def cluster(self, context: JobContext) -> str | None:
        if not self._transactional:
            return None
        with self._connect(context) as client:
            return client.cluster_id()

    def last_attempt(self, context: JobContext) -> AttemptId:
        with self._connect(context) as client:
            return last_attempt(client, self.transactional_id_prefix or context.job)

    def open_attempt(self, context: JobContext) -> AttemptId:
        with self._connect(context) as client:
            return open_attempt(client, self.transactional_id_prefix or context.job)

    def claim(self, context: JobContext) -> None:
        if not self._transactional:
            return
        with self._connect(context) as client:
            config = self._config(context, DRIVER, client)
            claim(client, config.prefix, config.timeout_ms, context.attempt)

    def successor(self, context: JobContext) -> AttemptId:
        if not self._transactional:
            return NO_ATTEMPT
        with self._connect(context) as client:
            return successor(client, self.transactional_id_prefix or context.job, context.attempt)

    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        if not committables:
            return []
        with self._connect(context) as client:
            settled = settle_all(client, committables, confirmed, SETTLE_BUDGET_SECONDS)
            close_committed(client, _committed(settled), MARKERS_BUDGET_SECONDS)
            return settled

    def give_up(self, context: JobContext, committables: Sequence[Committable]) -> list[Settled]:
        with self._connect(context) as client:
            return act_on_all(client, committables, SETTLE_BUDGET_SECONDS, Act.ABORT)

    def commit_held(self, context: JobContext, committables: Sequence[Committable]) -> list[Settled]:
        with self._connect(context) as client:
            settled = act_on_all(client, committables, SETTLE_BUDGET_SECONDS, Act.COMMIT)
            close_committed(client, _committed(settled), MARKERS_BUDGET_SECONDS)
            return settled

    def abort_lingering(self, context: JobContext) -> list[str]:
        """Also where the sink is checked before an attempt starts: the first call comes before any subtask."""
        with self._connect(context) as client:
            config = self._config(context, DRIVER, client)
            prefix, timeout_ms = config.prefix, config.timeout_ms
            if self._swept == context.attempt:
                refuse_successor(client, prefix, context.attempt)
                return abort_open(client, prefix, timeout_ms, context.attempt)
            # librdkafka checks its settings when it makes a producer; nothing is sent.
            Channel(config.transactional(f"{prefix}-check") if self._transactional else config.plain())
            if isinstance(self.topic, str):
                require_topics(client, (self.topic,), "output")
                require_topic_grants(client, (self.topic,), WRITE)
            lingering = fence_earlier(client, prefix, timeout_ms, context.attempt)
            self._swept = context.attempt
            return lingering

    @property
    def _transactional(self) -> bool:
        return self.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE

    def _connect(self, context: JobContext) -> LeaderClient:
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        return LeaderClient(servers, self.properties)

    def _config(self, context: JobContext, subtask: SubtaskIndex, client: LeaderClient) -> WriterConfig:
        return WriterConfig(
            prefix=self.transactional_id_prefix or context.job,
            subtask=subtask,
            attempt=context.attempt,
            settings=context.settings,
            bootstrap_servers=bootstrap_servers_of(self.bootstrap_servers, context.settings),
            properties=self.properties,
            timeout_ms=transaction_timeout_ms(context.settings, client) if self._transactional else SWEEP_TIMEOUT_MS,
        )


def _guarantee(name: str | DeliveryGuarantee) -> DeliveryGuarantee:
    try:
        return DeliveryGuarantee(name)
    except ValueError:
        choices = ", ".join(repr(item.value) for item in DeliveryGuarantee)
        raise ConfigurationError(f"delivery_guarantee must be one of {choices}, not {name!r}") from None


def _committed(settled: Sequence[Settled]) -> list[Committable]:
    return [item.committable for item in settled if item.outcome in (Outcome.COMMITTED, Outcome.ALREADY_COMMITTED)]
