"""A table of a job: the latest value of each key of a stream, which streams and other tables are joined with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twopc.errors import ConfigurationError
from twopc.graph.join_name import join_name
from twopc.operators import JoinBroadcast, JoinTable, KeepBroadcast, KeepTable
from twopc.operators.as_of_join import join_as_of
from twopc.operators.how import How, HowBoth
from twopc.operators.table_join import join_tables
from twopc.serde import Json, Serde

if TYPE_CHECKING:
    from twopc.job import Job
    from twopc.stream import Stream


class Table:
    """What `stream.table(name)` returns: streams are joined with it, `stream.join(table, function)`, and other tables.

    Its latest values are kept only where a stream is joined with it.
    """

    def __init__(self, job: Job, step: KeepTable | KeepBroadcast, of: str) -> None:
        self.job = job
        self.at = job.add(step, (of,), step.name)
        self._step, self._of = step, of

    def changes(self) -> Stream:
        """Return the stream of its changes: each value that a key gets, and None, a tombstone, where it is deleted."""
        from twopc.stream import Stream

        return Stream(self.job, self._changes())

    def join(
        self,
        other: Table,
        function: Callable[[Any, Any], Any],
        *,
        how: HowBoth = "inner",
        state: Serde | None = None,
        name: str | None = None,
    ) -> Table:
        """Return the table of `function(value, other value)` by key, which changes with each change of either side.

        A key is in it where both tables have it, with `how="left"` where this one has, with "outer" where either has;
        what a side has not is None. Where a key is in it no longer, `changes()` has a tombstone.

        Both sides are kept in checkpoints under `name`, encoded by their own serdes; without a name it is made of what
        they read, such as topics: `users-join-addresses`. The values of the new table are encoded by the serde `state`
        (JSON unless said otherwise), where a stream is joined with it. Where keys may come from is as with a stream
        that is joined with a table.
        """
        checked_table(other, self.job, "a table is joined with another one, and a stream with a table")
        sides = self._changes(), other._changes()
        name = join_name(name, "a join of tables", self.job.operators, *sides)
        step = join_tables(function, how, name, (self._step.state, other._step.state))
        joined = self.job.add(step, sides)
        return Table(self.job, KeepTable(f"{step.name}-table", Json() if state is None else state), joined)

    def _changes(self) -> str:
        """Return where its changes come from, which somebody takes."""
        if isinstance(self._step, KeepBroadcast):
            raise ConfigurationError(
                f"job {self.job.name!r}: {self._step} is read by every subtask for itself, so its changes are no "
                "stream of the job: make it a table by key, table(name)"
            )
        self.job.leave_out_unused(self.at)
        return self._of

    def joined_as_of(
        self,
        stream: str,
        function: Callable[[Any, Any], Any],
        times_ms: tuple[int, int],
        how: How,
        state: Serde,
        name: str | None,
    ) -> str:
        """Add what joins a stream, whose values `state` encodes, with this table as of each record's time.

        `times_ms` are how long versions are kept, and the grace. Returns the id of what is added.
        """
        sides = stream, self._changes()
        name = join_name(name, "join_as_of", self.job.operators, *sides)
        return self.job.add(join_as_of(function, how, name, times_ms, (state, self._step.state)), sides)

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


def checked_table(table: Any, job: Job, remedy: str) -> Table:
    """Return a table of this job; refuse anything else."""
    if not isinstance(table, Table) or table.job is not job:
        raise ConfigurationError(f"job {job.name!r}: {table!r} is no table of this job: {remedy}")
    return table
