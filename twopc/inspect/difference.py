"""The difference of two checkpoints, key by key: two ordered scans, side by side, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from twopc.errors import ConfigurationError
from twopc.inspect.checkpoint import Checkpoint
from twopc.inspect.entry import StateEntry
from twopc.inspect.state import Address

_Addressed = tuple[Address, StateEntry]


class ChangeKind(StrEnum):
    """The kinds of changes to a key between the first checkpoint and the second."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key that is not the same in both; `old` or `new` is None where there is none."""

    old: StateEntry | None
    new: StateEntry | None

    @property
    def kind(self) -> ChangeKind:
        if self.old is None:
            return ChangeKind.ADDED
        return ChangeKind.REMOVED if self.new is None else ChangeKind.CHANGED

    @property
    def entry(self) -> StateEntry:
        """The newer of the two: its address is that of both."""
        found = self.new or self.old
        assert found is not None
        return found


class Difference(Iterator[KeyChange]):
    """The changes, as they are found; `counts` and `same` count the keys that have been looked at so far."""

    def __init__(self, old: Iterator[_Addressed], new: Iterator[_Addressed]) -> None:
        self.same = 0
        self.counts = dict.fromkeys(ChangeKind, 0)
        self._changes = self._compare(old, new)

    def __next__(self) -> KeyChange:
        change = next(self._changes)
        self.counts[change.kind] += 1
        return change

    def _compare(self, old: Iterator[_Addressed], new: Iterator[_Addressed]) -> Iterator[KeyChange]:
        left, right = next(old, None), next(new, None)
        while left is not None or right is not None:
            if right is None or (left is not None and left[0] < right[0]):
                assert left is not None
                yield KeyChange(left[1], None)
                left = next(old, None)
            elif left is None or right[0] < left[0]:
                yield KeyChange(None, right[1])
                right = next(new, None)
            else:
                if left[1].raw == right[1].raw:
                    self.same += 1
                else:
                    yield KeyChange(left[1], right[1])
                left, right = next(old, None), next(new, None)


def diff(old: Checkpoint, new: Checkpoint, state: str | None = None) -> Difference:
    """Compare the stored bytes of every key, or of those of one state; both checkpoints must stay open meanwhile.

    A partition that another subtask reads now, after a change of parallelism, is the same partition.
    """
    if state is not None and state not in (known := {*old.states, *new.states}):
        raise ConfigurationError(f"neither checkpoint has a state {state!r}; they have: {', '.join(sorted(known))}")
    return Difference(old.addressed_entries(state), new.addressed_entries(state))
