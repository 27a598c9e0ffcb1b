"""A table of a job: the latest value of each key of a stream, which other streams are joined with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twopc.errors import ConfigurationError
from twopc.operators import JoinBroadcast, JoinTable, KeepBroadcast, KeepTable
from twopc.operators.table import How

if TYPE_CHECKING:
    from twopc.job import Job


class Table:
    """The table that `stream.table(name)` returns: only a place of the job, for `other.join(table, function)`."""

    def __init__(self, job: Job, step: KeepTable | KeepBroadcast, of: str) -> None:
        self.job = job
        self.at = job.add(step, (of,), step.name)
        self._step = step

    def joined(
        self, function: Callable[[Any, Any], Any], how: How, key: Callable[[Any], Any] | None
    ) -> JoinTable | JoinBroadcast:
        """Return what joins a stream with this table, by what `key` makes of a value, or by the record's own key."""
        if isinstance(self._step, KeepBroadcast):
            return JoinBroadcast(function, self.at, how, key)
        if key is not None:
            raise ConfigurationError(
                f"job {self.job.name!r}: {self._step} is looked up by the key of the record: bring the stream to that "
                "with key_by, or make it a broadcast table, table(name, broadcast=True), which any key is looked up in"
            )
        return JoinTable(function, self.at, how)

    def __repr__(self) -> str:
        return f"table {self.at!r} of job {self.job.name!r}"
