"""The ages of a subtask's open transactions: brokers abort one that is too old. For monitoring only."""

from __future__ import annotations

from collections.abc import Iterable


class TransactionAges:
    """Times are Unix milliseconds."""

    def __init__(self) -> None:
        self._open_since: int | None = None
        self._began: dict[str, int] = {}

    def begun(self, now_ms: int) -> None:
        """A transaction is open from now on."""
        self._open_since = now_ms

    def pre_committed(self, names: Iterable[str]) -> None:
        """Note the names of the transactions that were open until now."""
        if self._open_since is not None:
            self._began.update(dict.fromkeys(names, self._open_since))

    def oldest(self, outstanding: Iterable[str]) -> int | None:
        """Return when the oldest began of those that are not committed yet, and the open one; forget all others."""
        self._began = {name: self._began[name] for name in outstanding if name in self._began}
        began = [*self._began.values(), *([] if self._open_since is None else [self._open_since])]
        return min(began, default=None)
