"""The records of a stream that wait for what its table has by their times: a list by key, looked at by its times."""

from __future__ import annotations

from collections.abc import Iterator

from twopc.operators.bound_entries import BoundListState
from twopc.operators.bound_state import decoded
from twopc.processor import ListState
from twopc.state.forms import Waiting, WaitingOf


class WaitingRecords(ListState):
    """The declaration, with the serde `WaitingOf` that of the values."""


class BoundWaitingRecords(BoundListState, WaitingRecords):
    """The same, where the operator runs."""

    def alone(self, until: int) -> Iterator[Waiting]:
        """Yield those that wait until just this time, and have met nothing.

        One that waits until an earlier time is there still if its own timer has failed, and is not told twice.
        """
        for _, data in self._entries():
            if WaitingOf.times(data)[1:] == (until, False):
                yield decoded(self.name, self.serde, data)

    def leave(self, until: int) -> None:
        """Take out those that wait until this time or less."""
        for address, data in self._entries():
            if WaitingOf.times(data)[1] <= until:
                self._change(address, None)
