"""The versions of a table's row that a join as of a time may still look for: a list by key, looked at by its times."""

from __future__ import annotations

from typing import Any

from twopc.operators.bound_entries import BoundListState
from twopc.operators.bound_state import decoded
from twopc.processor import ListState
from twopc.state.forms import Version, VersionOf


class Versions(ListState):
    """The declaration, with the serde `VersionOf` that of the values."""


class BoundVersions(BoundListState, Versions):
    """The same, where the operator runs."""

    def as_of(self, at: int) -> Any:
        """Return the value of that time, None where there was none: of two of one time, that which came last."""
        newest = self._newest(at)
        if newest is None:
            return None
        version: Version = decoded(self.name, self.serde, newest[1])
        return version.value

    def forget(self, horizon: int) -> None:
        """Take out what is not of this time or a later one; a row that was deleted by then needs no version for it."""
        newest = self._newest(horizon)
        kept = None if newest is None or VersionOf.is_deletion(newest[1]) else newest[0]
        for address, data in self._entries():
            if VersionOf.time(data) <= horizon and address != kept:
                self._change(address, None)

    def _newest(self, until: int) -> tuple[bytes, bytes] | None:
        """Return address and data of the last version up to this time; addresses have the order in which they came."""
        found = [entry for entry in self._entries() if VersionOf.time(entry[1]) <= until]
        return max(found, key=lambda entry: (VersionOf.time(entry[1]), entry[0]), default=None)
