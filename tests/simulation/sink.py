"""The sink under simulation: the production writer, slots, committer, settling and sweeping, on simulated clients.

Only what makes producers is replaced, and the slots' keeper, which is a thread there and an event here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tests.simulation.broker import OUTPUT, SimBroker
from tests.simulation.global_commits import GlobalTable, SimGlobalCommitter
from tests.simulation.kafka_clients import SimControlClient, SimProducer, SimTrackedProducer, identity_of
from tests.simulation.process import Lane
from tests.simulation.world import World
from twopc.context import JobContext, SubtaskContext
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.kafka.identity import Identity
from twopc.kafka.lingering import abort_open, fence_earlier
from twopc.kafka.naming import SlotName, transactional_id
from twopc.kafka.resume import Act, act_on_all, settle_all
from twopc.kafka.slots import MOST_SLOTS, Slot, SlotEvent, SlotPool, SlotState
from twopc.kafka.transactional import TransactionalWriter
from twopc.kafka.writer_config import WriterConfig
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.sink import Committer, Settled, Sink

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
    """Writes each value to the output partition that it begins with."""

    def __init__(self, topic_id: str) -> None:
        self.topics = SimpleNamespace(ids={OUTPUT: topic_id})

    def learn_static(self) -> None:
        """Nothing has to be learned of the one topic."""

    def write(self, producer: SimTrackedProducer, batch: Batch) -> int:
        for value in batch.values:
            producer.topics.add(OUTPUT)
            producer.client.produce(int(value.partition(":")[0]), value)
        return len(batch)


class SimWriter(TransactionalWriter):
    """The production writer with producers of the simulated broker."""

    def __init__(self, broker: SimBroker, config: WriterConfig, identity: Identity) -> None:
        self._broker = broker
        output: Any = _Output(broker.topic_id)
        client: Any = SimControlClient(broker)
        identity.note_output(OUTPUT, broker.topic_id)
        super().__init__(config, output, client, identity, _timeout_ms(broker))

    def commit(self, committable: Committable, proof: Complete) -> None:
        """Simulated brokers owe no markers."""
        assert committable.checkpoint_id <= proof.checkpoint_id, "a completion proves earlier checkpoints only"
        self._live.commit(committable)

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

    def __init__(self, broker: SimBroker, context: JobContext, table: GlobalTable | None) -> None:
        self._table = table
        self._client: Any = SimControlClient(broker)
        self._broker = broker
        self._context = context
        self._fenced = False

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return settle_all(self._client, committables, confirmed, SETTLE_BUDGET_SECONDS)

    def give_up(self, committables: Sequence[Committable]) -> list[Settled]:
        return act_on_all(self._client, committables, SETTLE_BUDGET_SECONDS, Act.ABORT)

    def abort_lingering(self) -> list[str]:
        context, timeout_ms = self._context, _timeout_ms(self._broker)
        if self._fenced:
            return abort_open(self._client, context.job, timeout_ms, context.attempt)
        if self._table is not None:
            self._table.judge_sweep(context.attempt)
        lingering = fence_earlier(self._client, context.job, timeout_ms, context.attempt)
        self._fenced = True
        return lingering


class SimSink(Sink):
    """One copy per subtask and one per driver, as in production."""

    def __init__(self, broker: SimBroker, table: GlobalTable | None = None) -> None:
        self._broker = broker
        self._table = table

    def open_writer(self, context: SubtaskContext) -> SimWriter:
        config = WriterConfig(
            prefix=context.job,
            subtask=context.subtask,
            attempt=context.attempt,
            settings=context.settings,
            bootstrap_servers="",
            properties={},
        )
        return SimWriter(self._broker, config, identity_of(context, self._broker))

    def open_committer(self, context: JobContext) -> SimCommitter:
        return SimCommitter(self._broker, context, self._table)

    def open_global_committer(self, context: JobContext) -> SimGlobalCommitter | None:
        return None if self._table is None else SimGlobalCommitter(self._table)


def _timeout_ms(broker: SimBroker) -> int:
    return broker.world.faults.transaction_timeout_ms
