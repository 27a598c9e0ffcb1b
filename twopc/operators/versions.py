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
        newest = max(self._until(at), key=_order, default=None)
        if newest is None:
            return None
        version: Version = decoded(self.name, self.serde, newest[1])
        return version.value

    def forget(self, horizon: int) -> None:
        """Take out what is not of this time or a later one; a row that was deleted by then needs no version for it."""
        past = self._until(horizon)
        newest = max(past, key=_order, default=None)
        for entry in past:
            if entry is not newest or VersionOf.is_deletion(entry[1]):
                self._change(entry[0], None)

    def _until(self, at: int) -> list[_Entry]:
        return [entry for entry in self._entries() if VersionOf.time(entry[1]) <= at]


_Entry = tuple[bytes, bytes]
"""Address and data of a version; addresses have the order in which they came."""


def _order(entry: _Entry) -> tuple[int, bytes]:
    return VersionOf.time(entry[1]), entry[0]
