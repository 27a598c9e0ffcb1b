"""The join of a stream with a table as of each record's time, as a processor: it meets the row that was there then.

- A row has a version from the time of each record of the table on; a tombstone is one, too. Of two of one time, that
  counts which came last.
- Versions are kept as long as a record may come that is at most `keep` behind the stream time: those that are not
  older, and the last before them. A record that is further behind goes wrong: what it would have met may be gone.
- Of a row that was deleted by then nothing is kept: an older version that comes behind that has the row again.
- A record waits until the stream time is `grace` past its time, for versions of its time or before that come by then;
  one that comes later than that meets at once what is there. A version that comes behind that changes nothing of it.
- Until when it waits was fixed when it came, so a job that was changed tells what waits as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twopc.errors import ConfigurationError
from twopc.operators.functions import function_name
from twopc.operators.how import How, check_join
from twopc.operators.sided import SidedJoin, SidedProcessor
from twopc.operators.versions import BoundVersions, Versions
from twopc.operators.waiting_records import BoundWaitingRecords, WaitingRecords
from twopc.processor import Context
from twopc.record import Record
from twopc.serde import Serde
from twopc.state.forms import Version, VersionOf, Waiting, WaitingOf


class AsOfJoin(SidedProcessor):
    """`versions` and `waiting` are declared by a class of the join's own, with the serdes of table and stream.

    `keep_ms` is no shorter than `grace_ms`, so what is forgotten is older than whatever waits.
    """

    versions: BoundVersions
    waiting: BoundWaitingRecords

    def __init__(self, function: Callable[[Any, Any], Any], how: How, keep_ms: int, grace_ms: int) -> None:
        self.function, self.how = function, how
        self.keep_ms, self.grace_ms = keep_ms, grace_ms

    def process(self, record: Record, context: Context) -> list[Record] | None:
        is_version, at = next(self.are_right), context.timestamp
        if at is None:
            raise ValueError("the record has no timestamp, and a join as of a time needs one (timestamp= of a source)")
        # Behind a key_by there is no stream time before the first mark.
        now = at if context.stream_time is None else context.stream_time
        if is_version:
            self.versions.add(Version(at, record.value))
            self.versions.forget(now - self.keep_ms)
            if at + self.keep_ms > now:
                context.set_timer(at + self.keep_ms)
            return None
        if at < now - self.keep_ms:
            raise ValueError(
                f"the record is {now - at} ms behind the stream time, and versions of the table are kept for "
                f"{self.keep_ms} ms: keep= of join_as_of says how long"
            )
        if (until := at + self.grace_ms) > now:
            self.waiting.add(Waiting(at, until, False, record.value))
            context.set_timer(until)
            return None
        return [record.replace(value=value) for value in self._joined(at, record.value)]

    def on_timer(self, at: int, context: Context) -> list[Record]:
        outputs = [
            Record(context.key, value, timestamp=waiting.at)
            for waiting in self.waiting.alone(at)
            for value in self._joined(waiting.at, waiting.value)
        ]
        self.waiting.leave(at)
        self.versions.forget(at - self.keep_ms)
        return outputs

    def _joined(self, at: int, value: Any) -> list[Any]:
        """Return what it makes with the version of this time; nothing where there is none, and it is an inner join."""
        found = self.versions.as_of(at)
        return [] if found is None and self.how == "inner" else [self.function(value, found)]


@dataclass(frozen=True, slots=True)
class JoinAsOf(SidedJoin):
    """(value, what the table had for its key at its time) -> value; the key stays as it is"""

    processor: AsOfJoin
    operator = "join_as_of"
    earlier_ports = ("right",)

    def __str__(self) -> str:
        join = self.processor
        grace = f"grace={join.grace_ms}ms, " if join.grace_ms else ""
        return (
            f"join_as_of({function_name(join.function)}, keep={join.keep_ms}ms, {grace}"
            f"how={join.how!r}, name={self.name!r})"
        )


def join_as_of(
    function: Callable[[Any, Any], Any],
    how: Any,
    name: str,
    times_ms: tuple[int, int],
    serdes: tuple[Serde, Serde],
) -> JoinAsOf:
    """Return the step that joins a stream with a table, with serdes for the values of both.

    `times_ms` are how long versions are kept, and the grace.
    """
    check_join("join_as_of", function, how, How)
    if times_ms[0] < times_ms[1]:
        raise ConfigurationError(
            f"keep of join_as_of is shorter than its grace: versions are kept for {times_ms[0]} ms, and records wait "
            f"for {times_ms[1]} ms: make keep at least as long"
        )
    stream, table = serdes
    states = {"versions": Versions(VersionOf(table)), "waiting": WaitingRecords(WaitingOf(stream))}
    own = type("AsOfJoinOf", (AsOfJoin,), states)
    return JoinAsOf(own(function, how, *times_ms), name)
