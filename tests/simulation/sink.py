"""The sink under simulation: the production writer, slots, committer, settling and sweeping, on simulated clients.

Only what makes producers is replaced, and the slots' keeper, which is a thread there and an event here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tests.simulation.broker import SimBroker
from tests.simulation.global_commits import GlobalTable, SimGlobalCommitter
from tests.simulation.job import KAFKA_TOPICS, OWN, PREFIXES, lane_of
from tests.simulation.kafka_clients import CLUSTER, SimControlClient, SimProducer, SimTrackedProducer, identity_of
from tests.simulation.own_text import mark_text, own_text
from tests.simulation.process import Crashed, Lane
from tests.simulation.world import World
from twopc.context import JobContext, SubtaskContext
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.kafka.output.writer_config import WriterConfig
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topics.known_topics import KnownTopic
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.lingering_transactions import abort_open, fence_earlier
from twopc.kafka.transactions.naming import SlotName, transactional_id
from twopc.kafka.transactions.resume import SettleAction, act_on_all, settle_all
from twopc.kafka.transactions.slots import MOST_SLOTS, Slot, SlotEvent, SlotPool, SlotState
from twopc.kafka.transactions.transactional import TransactionalWriter
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.sink import Committer, PreCommit, Settled, SharedTransaction, Sink
from twopc.stand_ins import PassedTime

KEEPER_MS = 20
SETTLE_BUDGET_SECONDS = 5.0


class _Changed(type(threading.RLock())):  # type: ignore[misc]
    """As `threading.Condition`, for which nobody ever waits: there is one thread."""

    def notify_all(self) -> None:
        """Nobody to wake."""


_CHANGED: Any = _Changed()


class SimSlotPool(SlotPool):
    """The production pool without its thread."""

    def __init__(
        self, world: World, make: Callable[[int], tuple[str, Any]], first: int, spare_after_seconds: float
    ) -> None:
        assert world.lane is not None, "a sink is opened by some process"
        self._world = world
        self._keeper_lane = Lane(world.lane.process, "keeper")
        self._make = make
        self._changed = _CHANGED
        self._closed = False
        self._wanted = False
        self._slots = [Slot(*make(number)) for number in range(first)]

    def take(self, timeout: float) -> Slot:
        if self._free() is None:
            self._make_missing()
        slot = self._free()
        if slot is None:
            raise Unavailable("simulated: no transactional producer became ready")
        slot.change(SlotEvent.TAKEN)
        return slot

    def release(self, completed: CheckpointId) -> None:
        super().release(completed)
        if self._to_make() is not None:
            self._later()

    def close(self) -> None:
        self._closed = True

    def _later(self) -> None:
        self._world.after(KEEPER_MS, self._make_missing, self._keeper_lane)

    def _make_missing(self) -> None:
        slot = self._to_make()
        if self._closed or (slot is None and (self._free() is not None or len(self._slots) >= MOST_SLOTS)):
            return
        try:
            name, producer = self._make(len(self._slots) if slot is None else self._slots.index(slot))
        except TwoPhaseCommitError:
            self._later()
            return
        if slot is None:
            self._slots.append(Slot(name, producer))
        elif slot.state is SlotState.TO_MAKE:
            slot.change(SlotEvent.MADE)
            slot.producer, slot.doubtful = producer, False


class _Output:
    """Writes each value to the output partition of the lane that it comes from."""

    bytes_written = 0
    chooses = False

    def __init__(self, broker: SimBroker, topic: str, topics: SimpleNamespace) -> None:
        self.topics = topics
        self.own_topic = topic if topic == KAFKA_TOPICS[OWN] else None
        self._broker = broker
        self._topic = topic

    def learn_static(self) -> None:
        """Nothing has to be learned of a topic."""

    def write(self, producer: SimTrackedProducer, batch: Batch) -> int:
        producer.topics.add(self._topic)
        for row, value, headers in zip(batch.rows, batch.values, batch.headers, strict=True):
            if isinstance(row, PassedTime):
                partition = TopicPartition(self._topic, row.number)
                producer.client.produce(self._broker.index_of(partition), mark_text(headers))
            else:
                text = value if self._topic != KAFKA_TOPICS[OWN] else own_text(value, headers)
                producer.client.produce(self._broker.log_of(self._topic, lane_of(value)), text)
        return len(batch)


class SimWriter(TransactionalWriter):
    """The production writer with producers of the simulated broker."""

    def __init__(self, broker: SimBroker, topic: str, config: WriterConfig, identity: TopicIdentity) -> None:
        self._broker = broker
        ids = dict.fromkeys(broker.topics, broker.topic_id)
        known = {topic: KnownTopic(topic_id, 1) for topic, topic_id in ids.items()}
        topics = SimpleNamespace(ids=ids, known=known, partitions=dict.fromkeys(ids, len(broker.lanes)))
        output: Any = _Output(broker, topic, topics)
        client: Any = SimControlClient(broker)
        for each in broker.topics:
            identity.note_output(each, broker.topic_id)
        super().__init__(config, output, client, identity, _timeout_ms(broker))

    def pre_commit(self, request: PreCommit) -> Committable | None:
        committable = super().pre_commit(request)
        if committable is not None:
            prepared = PreparedTransaction.from_committable(committable)
            self._broker.pre_committed[prepared.transactional_id, prepared.start_ms] = committable.name
        return committable

    def commit(self, committable: Committable, proof: Complete) -> None:
        """Simulated brokers owe no markers."""
        assert committable.checkpoint_id <= proof.checkpoint_id, "a completion proves earlier checkpoints only"
        try:
            self._live.commit(committable)
        except Crashed:
            coverage, sinks = self._broker.world.coverage, self._broker.world.faults.sinks
            committed = self._broker.has_committed(committable.name.partition("@")[0])
            coverage["crash between the commits of two groups"] += committed and len(sinks) > 1
            raise

    def close(self) -> None:
        self._pool.close()

    def _make(self, number: int) -> tuple[str, Any]:
        name = transactional_id(self._config.prefix, SlotName(self._config.attempt, self._config.subtask, number))
        producer = SimProducer(self._broker, name, self._timeout_ms)
        producer.init_transactions()
        return name, SimTrackedProducer(producer)

    def _metadata_of(self, group: str) -> object:
        return group


class SimCommitter(Committer):
    """The production settling and sweeping, on a simulated client."""

    def __init__(self, broker: SimBroker, prefix: str, context: JobContext, table: GlobalTable | None) -> None:
        self._table = table
        self._client: Any = SimControlClient(broker)
        self._broker = broker
        self._prefix = prefix
        self._context = context
        self._fenced = False

    def join(self, sink: Sink) -> None:
        """The transactions are the same."""

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return settle_all(self._client, committables, confirmed, SETTLE_BUDGET_SECONDS)

    def give_up(self, committables: Sequence[Committable]) -> list[Settled]:
        return act_on_all(self._client, committables, SETTLE_BUDGET_SECONDS, SettleAction.ABORT)

    def abort_lingering(self) -> list[str]:
        context, timeout_ms = self._context, _timeout_ms(self._broker)
        if self._fenced:
            return abort_open(self._client, self._prefix, timeout_ms, context.attempt)
        if self._table is not None:
            self._table.judge_sweep(context.attempt)
        lingering = fence_earlier(self._client, self._prefix, timeout_ms, context.attempt)
        self._fenced = True
        return lingering


class SimSink(Sink):
    """One copy per subtask and one per driver, as in production."""

    def __init__(self, broker: SimBroker, name: str, table: GlobalTable | None) -> None:
        self._table = table
        self._broker = broker
        self._prefix = PREFIXES[name]
        self._topic = KAFKA_TOPICS[name]

    @property
    def topics(self) -> tuple[str, ...]:
        return (self._topic,)

    def shared_transaction(self, context: JobContext) -> SharedTransaction:
        return SharedTransaction(self._prefix, CLUSTER)

    def output(self, topics: Any) -> Any:
        return _Output(self._broker, self._topic, topics)

    def open_writer(self, context: SubtaskContext) -> SimWriter:
        config = WriterConfig(
            prefix=self._prefix,
            subtask=context.subtask,
            attempt=context.attempt,
            settings=context.settings,
            bootstrap_servers="",
            properties={},
        )
        return SimWriter(self._broker, self._topic, config, identity_of(context, self._broker))

    def open_committer(self, context: JobContext) -> SimCommitter:
        return SimCommitter(self._broker, self._prefix, context, self._table)

    def open_global_committer(self, context: JobContext) -> SimGlobalCommitter | None:
        return None if self._table is None else SimGlobalCommitter(self._table)


def _timeout_ms(broker: SimBroker) -> int:
    return broker.world.faults.transaction_timeout_ms
