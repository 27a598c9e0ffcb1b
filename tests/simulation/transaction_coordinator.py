"""The transaction coordinator: what it holds of each transactional id, and how requests change that. Pure.

    Empty, Complete* --partition added--> Ongoing --EndTxn--> Prepare{Commit,Abort} --> Complete{Commit,Abort}
    Ongoing --InitProducerId, or its time-out--> PrepareAbort, producer epoch + 1
    Empty, Complete* --InitProducerId--> Empty, producer epoch + 1, or a new producer id when its epochs are used up

The caller decides when a prepared transaction is completed, that is, when its markers are written. `bumps` is whether
the broker's own transaction protocol is 2 (feature transaction.version=2): then what it aborts by itself counts as if
ended with EndTxn 5, so that who names the producer epoch before is taken for one that asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.transaction_tables import (
    BUMPING_END_TXN,
    END_TXN_1,
    END_TXN_2,
    LAST_PRODUCER_EPOCH,
    MOST_PRODUCER_EPOCH,
    Asks,
    Code,
)
from twopc.config import NO_TIMEOUT_MS
from twopc.kafka.clients.described_transaction import BrokerState

NOBODY = (-1, -1)
_OPEN = (BrokerState.ONGOING, BrokerState.PREPARE_COMMIT, BrokerState.PREPARE_ABORT)
_PREPARED = (BrokerState.PREPARE_COMMIT, BrokerState.PREPARE_ABORT)

#: Producer id and producer epoch.
Producer = tuple[int, int]


@dataclass(slots=True)
class TransactionalId:
    """The state of one id. `previous_producer_id` and `last_producer_epoch` are what a retry may name."""

    name: str
    producer_id: int
    timeout_ms: int
    updated_ms: int
    producer_epoch: int = -1
    previous_producer_id: int = -1
    last_producer_epoch: int = -1
    next_producer_id: int = -1
    state: BrokerState = BrokerState.EMPTY
    start_ms: int = -1
    partitions: set[int] = field(default_factory=set)

    @property
    def producer(self) -> Producer:
        return self.producer_id, self.producer_epoch


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """The end of a transaction that is to be written: a marker of this producer in each partition."""

    name: str
    producer: Producer
    commit: bool
    partitions: frozenset[int]


class TransactionCoordinator:
    """All transactional ids of a cluster. `on_prepare` is told as soon as an outcome is decided."""

    def __init__(
        self,
        *,
        bumps: bool,
        max_timeout_ms: int = NO_TIMEOUT_MS,
        last_producer_epoch: int = LAST_PRODUCER_EPOCH,
        on_prepare: Callable[[TransactionalId], None] = lambda held: None,
    ) -> None:
        self.ids: dict[str, TransactionalId] = {}
        self.bumps = bumps
        self._max_timeout_ms = max_timeout_ms
        self._last_producer_epoch = last_producer_epoch
        self._on_prepare = on_prepare
        self._last_producer_id = 0

    def init_producer_id(
        self, name: str, timeout_ms: int, now_ms: int, expected: Producer | None = None
    ) -> tuple[Code, Producer]:
        """Give the id to a new producer, or raise the epoch of the one that is expected to have it."""
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return Code.INVALID_TRANSACTION_TIMEOUT, NOBODY
        held = self.ids.get(name)
        if held is None:
            held = self.ids[name] = TransactionalId(name, self._new_producer_id(), timeout_ms, now_ms)
        if expected is not None and not self._may_go_on(held, expected):
            return Code.PRODUCER_FENCED, NOBODY
        if held.state is BrokerState.ONGOING:
            self.fence(held, now_ms)
        if held.state in _PREPARED:
            return Code.CONCURRENT_TRANSACTIONS, NOBODY
        code = self._raise(held, expected)
        if code is not Code.NONE:
            return code, NOBODY
        held.state, held.start_ms, held.timeout_ms, held.updated_ms = BrokerState.EMPTY, -1, timeout_ms, now_ms
        held.partitions = set()
        return code, held.producer

    def add_partition(self, name: str, producer: Producer, partition: int, now_ms: int) -> Code:
        """Make the partition part of the transaction, which begins with its first one."""
        held = self.ids.get(name)
        code = self._writable(held, producer)
        if held is None or code is not Code.NONE:
            return code
        if held.state is not BrokerState.ONGOING:
            held.state, held.start_ms = BrokerState.ONGOING, now_ms
        elif partition in held.partitions:
            return code
        held.partitions.add(partition)
        held.previous_producer_id, held.updated_ms = held.producer_id, now_ms
        return code

    def verify_partition(self, name: str, producer: Producer, partition: int) -> Code:
        """Say whether the partition is part of the producer's transaction."""
        held = self.ids.get(name)
        code = self._writable(held, producer)
        if held is None or code is not Code.NONE:
            return code
        return Code.NONE if partition in held.partitions else Code.TRANSACTION_ABORTABLE

    def end(self, name: str, producer: Producer, *, commit: bool, version: int, now_ms: int) -> tuple[Code, Producer]:
        """Decide the outcome. From version 5 on, the answer names the producer that may go on."""
        held = self.ids.get(name)
        if held is None:
            return Code.INVALID_PRODUCER_ID_MAPPING, NOBODY
        bumps = version >= BUMPING_END_TXN
        code = self._answer_2(held, producer, commit) if bumps else _answer_1(held, producer, commit)
        if code is None:
            self._prepare(held, commit, now_ms, bumps=bumps)
            code = Code.NONE
        if code is not Code.NONE or not bumps:
            return code, NOBODY
        return code, held.producer if held.next_producer_id < 0 else (held.next_producer_id, 0)

    def complete(self, name: str, now_ms: int) -> EndedTransaction:
        """Finish a prepared transaction, whose markers have been written."""
        held = self.ids[name]
        commit = held.state is BrokerState.PREPARE_COMMIT
        ended = EndedTransaction(name, held.producer, commit, frozenset(held.partitions))
        held.state = BrokerState.COMPLETE_COMMIT if commit else BrokerState.COMPLETE_ABORT
        held.previous_producer_id = held.producer_id
        if held.next_producer_id >= 0:
            held.producer_id, held.producer_epoch, held.next_producer_id = held.next_producer_id, 0, -1
        held.partitions, held.updated_ms = set(), now_ms
        return ended

    def fence(self, held: TransactionalId, now_ms: int) -> None:
        """Abort what is open, from the broker's side: because of a new producer, or of its time-out."""
        if self.bumps:
            self._prepare(held, commit=False, now_ms=now_ms, bumps=True)
            return
        held.producer_epoch = min(held.producer_epoch + 1, MOST_PRODUCER_EPOCH)
        held.last_producer_epoch = -1
        self._prepare(held, commit=False, now_ms=now_ms, bumps=False)

    def timed_out(self, now_ms: int) -> list[TransactionalId]:
        """Return the ids whose transaction has been open for too long."""
        return [
            held
            for held in self.ids.values()
            if held.state is BrokerState.ONGOING
            and held.timeout_ms < NO_TIMEOUT_MS
            and held.start_ms + held.timeout_ms < now_ms
        ]

    def forget(self, idle_since_ms: int) -> list[str]:
        """Drop the ids that have no open transaction and were last used before; return their names."""
        gone = [held.name for held in self.ids.values() if held.state not in _OPEN and held.updated_ms <= idle_since_ms]
        for name in gone:
            del self.ids[name]
        return gone

    def _answer_2(self, held: TransactionalId, producer: Producer, commit: bool) -> Code | None:
        rotated = producer == (held.previous_producer_id, self._last_producer_epoch) and held.producer_epoch == 0
        if producer[0] != held.producer_id and not rotated:
            return Code.INVALID_PRODUCER_ID_MAPPING
        if producer[1] == held.producer_epoch:
            return END_TXN_2[held.state, commit, Asks.AS_CURRENT]
        if rotated or producer[1] + 1 == held.producer_epoch:
            return END_TXN_2[held.state, commit, Asks.AS_BEFORE]
        return Code.PRODUCER_FENCED

    def _writable(self, held: TransactionalId | None, producer: Producer) -> Code:
        if held is None or held.producer_id != producer[0]:
            return Code.INVALID_PRODUCER_ID_MAPPING
        if held.producer_epoch != producer[1]:
            return Code.PRODUCER_FENCED
        return Code.CONCURRENT_TRANSACTIONS if held.state in _PREPARED else Code.NONE

    def _may_go_on(self, held: TransactionalId, expected: Producer) -> bool:
        """Whether a producer that names itself may have the id; its epoch is looked at later."""
        retries_rotation = expected[0] == held.previous_producer_id and expected[1] >= self._last_producer_epoch
        return held.producer_epoch == -1 or expected[0] == held.producer_id or retries_rotation

    def _raise(self, held: TransactionalId, expected: Producer | None) -> Code:
        """Raise the producer epoch for InitProducerId, or go on with another producer id when there is none left."""
        current = held.producer_epoch
        exhausted = current >= self._last_producer_epoch
        if exhausted and (expected is None or expected[1] == current):
            held.previous_producer_id, held.producer_id = held.producer_id, self._new_producer_id()
            held.producer_epoch, held.last_producer_epoch = 0, -1 if expected is None else current
            return Code.NONE
        if exhausted:
            return Code.UNKNOWN_SERVER_ERROR
        if expected is not None and current != -1 and expected[1] != current:
            if expected[1] != held.last_producer_epoch:
                return Code.PRODUCER_FENCED
        else:
            held.producer_epoch, held.last_producer_epoch = current + 1, -1 if expected is None else current
        held.previous_producer_id = held.producer_id
        return Code.NONE

    def _prepare(self, held: TransactionalId, commit: bool, now_ms: int, *, bumps: bool) -> None:
        if held.state is not BrokerState.ONGOING:
            held.start_ms = now_ms
        if bumps:
            if held.producer_epoch >= self._last_producer_epoch:
                held.next_producer_id = self._new_producer_id()
            held.last_producer_epoch = held.producer_epoch
            held.producer_epoch = min(held.producer_epoch + 1, MOST_PRODUCER_EPOCH)
        held.state = BrokerState.PREPARE_COMMIT if commit else BrokerState.PREPARE_ABORT
        held.previous_producer_id, held.updated_ms = held.producer_id, now_ms
        self._on_prepare(held)

    def _new_producer_id(self) -> int:
        self._last_producer_id += 1
        return self._last_producer_id


def _answer_1(held: TransactionalId, producer: Producer, commit: bool) -> Code | None:
    if producer[0] != held.producer_id:
        return Code.INVALID_PRODUCER_ID_MAPPING
    if producer[1] != held.producer_epoch:
        return Code.PRODUCER_FENCED
    return END_TXN_1[held.state, commit]
