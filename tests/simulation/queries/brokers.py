"""Brokers as far as a query sees them: transactional ids, of which each has one transaction after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from twopc.protocol.facts import Committable
from twopc.sink import Outcome, Settled


class State(Enum):
    """Of a transaction, as its coordinator has it."""

    OPEN = "open"
    COMMITTING = "committed, and the partitions don't know it yet"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass
class Transaction:
    """The transaction of one try of a task: the rows of one partition of one batch."""

    id: str
    batch: int
    partition: int
    state: State = State.OPEN


@dataclass
class Brokers:
    """`transactions` are by names, which say the id and how many it had before. `are_slow` draws how commits end."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
    are_slow: Callable[[], bool] = lambda: False
    _newest: dict[str, str] = field(default_factory=dict)
    _epochs: dict[str, int] = field(default_factory=dict)

    def initialise(self, name: str) -> int:
        """Abort what is open under an id, and fence who had it; return the epoch of its new producer."""
        newest = self._of(name)
        if newest is not None:
            match newest.state:
                case State.OPEN:
                    newest.state = State.ABORTED
                case State.COMMITTING:
                    newest.state = State.COMMITTED
        self._epochs[name] = self._epochs.get(name, 0) + 1
        return self._epochs[name]

    def begin(self, name: str, batch: int, partition: int) -> str:
        """Begin a transaction, and write all of it; return its name."""
        before = self._of(name)
        if before is not None and before.state is State.COMMITTING:
            before.state = State.COMMITTED
        made = f"{name}@{len(self.transactions)}"
        self.transactions[made] = Transaction(name, batch, partition)
        self._newest[name] = made
        return made

    def is_fenced(self, name: str, epoch: int) -> bool:
        return self._epochs[name] != epoch

    def open_ids(self) -> list[str]:
        """The ids under which something is open, and neither committed nor aborted."""
        return self.ids_in(State.OPEN)

    def ids_in(self, *states: State) -> list[str]:
        return [name for name, newest in self._newest.items() if self.transactions[newest].state in states]

    def expire(self, name: str) -> None:
        """Abort what is open under an id: it has been for too long."""
        self.initialise(name)

    def end(self, committable: Committable, wanted: State | None) -> Settled:
        """Commit or abort a transaction, or only look at it; return what became of it."""
        found = self.transactions[committable.name]
        before = found.state
        if before is State.OPEN and wanted is not None:
            found.state = State.COMMITTING if wanted is State.COMMITTED and self.are_slow() else wanted
        return Settled(committable, _outcome(before, wanted), "", certain=found.state is State.ABORTED)

    def visible(self) -> list[tuple[int, int]]:
        """Batch and partition of everything that a reader sees, or will."""
        seen = (each for each in self.transactions.values() if each.state in (State.COMMITTING, State.COMMITTED))
        return sorted((each.batch, each.partition) for each in seen)

    def _of(self, name: str) -> Transaction | None:
        newest = self._newest.get(name)
        return None if newest is None else self.transactions[newest]


def _outcome(before: State, wanted: State | None) -> Outcome:
    match before, wanted:
        case ((State.COMMITTING | State.COMMITTED), _):
            return Outcome.ALREADY_COMMITTED
        case State.OPEN, None:
            return Outcome.HELD
        case State.OPEN, State.COMMITTED:
            return Outcome.COMMITTED
        case _:
            return Outcome.LOST
