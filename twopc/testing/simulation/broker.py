"""The broker: transactions of protocol version 1 and the group's offsets inside them.

    Empty --produce--> Ongoing --EndTxn--> Prepare{Commit,Abort} --markers--> Complete{Commit,Abort}
    Ongoing --InitProducerId, or its time-out--> PrepareAbort, epoch + 1 --markers--> CompleteAbort
    Empty, Complete* --InitProducerId--> Empty, epoch + 1 (a new producer id when the epochs are used up)

A producer keeps id and epoch over all its transactions. The answers of EndTxn are those of the table in the design,
section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from twopc.config import NO_TIMEOUT_MS
from twopc.protocol.ids import TopicPartition
from twopc.protocol.recovery import BrokerState
from twopc.testing.simulation.world import World

NONE = 0
_COMPLETED = {
    BrokerState.PREPARE_COMMIT: BrokerState.COMPLETE_COMMIT,
    BrokerState.PREPARE_ABORT: BrokerState.COMPLETE_ABORT,
}
_COMMITTED = (BrokerState.PREPARE_COMMIT, BrokerState.COMPLETE_COMMIT)
_ABORTED = (BrokerState.PREPARE_ABORT, BrokerState.COMPLETE_ABORT)


@dataclass(slots=True)
class TransactionalId:
    """What the transaction coordinator remembers of one id."""

    name: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: BrokerState = BrokerState.EMPTY
    start_ms: int = -1
    partitions: dict[int, None] = field(default_factory=dict)
    offsets: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, or the marker that ends a producer's transaction in a partition."""

    producer_id: int
    value: str = ""
    commit: bool | None = None


class SimBroker:
    """Outlives every process of the job. `on_commit` is told of each transaction whose commit was decided."""

    def __init__(self, world: World, partitions: int) -> None:
        self.world = world
        self.logs: list[list[Entry]] = [[] for _ in range(partitions)]
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.ids: dict[str, TransactionalId] = {}
        self.on_commit: Callable[[TransactionalId], None] = lambda found: None
        self._last_producer_id = 0

    def init_producer_id(self, name: str, timeout_ms: int) -> tuple[int, int] | int:
        """Return producer id and epoch, or the code of a retriable error."""
        found = self.ids.get(name)
        if found is None:
            found = self.ids[name] = TransactionalId(name, self._next_producer_id(), -1, timeout_ms)
        elif found.state is BrokerState.ONGOING:
            found.producer_epoch += 1
            self._prepare(found, BrokerState.PREPARE_ABORT)
        if found.state in _COMPLETED:
            return int(KafkaError.CONCURRENT_TRANSACTIONS)
        found.producer_epoch += 1
        if found.producer_epoch >= self.world.faults.last_producer_epoch:
            found.producer_id, found.producer_epoch = self._next_producer_id(), 0
        found.state, found.start_ms, found.timeout_ms = BrokerState.EMPTY, -1, timeout_ms
        self.world.note("broker", "InitProducerId", name, found.producer_id, found.producer_epoch)
        return found.producer_id, found.producer_epoch

    def produce(self, name: str, producer: tuple[int, int], partition: int, value: str) -> int:
        """Append a record to the producer's transaction, begun with its first; return an error code."""
        found = self.ids[name]
        refused = self._join(found, producer)
        if refused:
            return refused
        found.partitions[partition] = None
        self.logs[partition].append(Entry(found.producer_id, value))
        return NONE

    def add_offsets(self, name: str, producer: tuple[int, int], offsets: dict[TopicPartition, tuple[int, str]]) -> int:
        found = self.ids[name]
        refused = self._join(found, producer)
        if not refused:
            found.offsets.update(offsets)
        return refused

    def end(self, name: str, producer: tuple[int, int], *, commit: bool) -> int:
        """EndTxn, version 3."""
        found = self.ids[name]
        code = self._end(found, producer, commit)
        self.world.note("broker", "EndTxn commit" if commit else "EndTxn abort", name, producer, f"-> {code}")
        return code

    def _end(self, found: TransactionalId, producer: tuple[int, int], commit: bool) -> int:
        if producer[0] != found.producer_id:
            return int(KafkaError.INVALID_PRODUCER_ID_MAPPING)
        if producer[1] != found.producer_epoch:
            return int(KafkaError.PRODUCER_FENCED)
        if found.state is BrokerState.ONGOING:
            self._prepare(found, BrokerState.PREPARE_COMMIT if commit else BrokerState.PREPARE_ABORT)
            return NONE
        if found.state in (_COMMITTED if commit else _ABORTED):
            return NONE
        return int(KafkaError.INVALID_TXN_STATE)

    def open_transactions(self) -> list[str]:
        return [
            name for name, found in self.ids.items() if found.state is BrokerState.ONGOING or found.state in _COMPLETED
        ]

    def read_committed(self, partition: int) -> list[str]:
        """What a reader sees: up to the first record of an open transaction, without what was aborted."""
        log, visible, outcome = self.logs[partition], [], {}
        for entry in reversed(log):
            if entry.commit is not None:
                outcome[entry.producer_id] = entry.commit
            else:
                visible.append((entry.value, outcome.get(entry.producer_id)))
        visible.reverse()
        first_open = next((index for index, (_, commit) in enumerate(visible) if commit is None), len(visible))
        return [value for value, commit in visible[:first_open] if commit]

    def _next_producer_id(self) -> int:
        self._last_producer_id += 1
        return self._last_producer_id

    def _join(self, found: TransactionalId, producer: tuple[int, int]) -> int:
        if producer != (found.producer_id, found.producer_epoch):
            return int(KafkaError.PRODUCER_FENCED)
        if found.state in _COMPLETED:
            return int(KafkaError.CONCURRENT_TRANSACTIONS)
        if found.state is not BrokerState.ONGOING:
            found.state, found.start_ms = BrokerState.ONGOING, self.world.now().unix_ms
            found.partitions, found.offsets = {}, {}
            self._expire_later(found)
        return NONE

    def _expire_later(self, found: TransactionalId) -> None:
        began = (found.producer_id, found.producer_epoch, found.start_ms)

        def expire() -> None:
            same = began == (found.producer_id, found.producer_epoch, found.start_ms)
            if same and found.state is BrokerState.ONGOING:
                self.world.note("broker", "EXPIRED", found.name, found.producer_id, found.producer_epoch)
                found.producer_epoch += 1
                self._prepare(found, BrokerState.PREPARE_ABORT)

        if found.timeout_ms < NO_TIMEOUT_MS:
            self.world.after(found.timeout_ms, expire)

    def _prepare(self, found: TransactionalId, state: BrokerState) -> None:
        found.state = state
        if state is BrokerState.PREPARE_COMMIT:
            self.on_commit(found)
        producer_id = found.producer_id

        def complete() -> None:
            commit = state is BrokerState.PREPARE_COMMIT
            for partition in found.partitions:
                self.logs[partition].append(Entry(producer_id, commit=commit))
            if commit:
                self.offsets.update(found.offsets)
            found.state = _COMPLETED[state]
            self.world.note("broker", found.state.value, found.name, found.producer_id, found.producer_epoch)

        window = 0 if self.world.calm else self.world.delay(self.world.faults.prepare_ms)
        if window:
            self.world.after(window, complete)
        else:
            complete()
