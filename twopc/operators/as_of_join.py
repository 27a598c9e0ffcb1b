"""The join of a stream with a table as of each record's time, as a processor: it meets the row that was there then.

- A row has a version from the time of each record of the table on; a tombstone is one, too. Of two of one time, that
  counts which came last.
- Versions are kept as long as a record may come that is at most `keep` behind the stream time: those that are not
  older, and the last before them. A record that is further behind goes wrong: what it would have met may be gone.
- Of a row that was deleted by then nothing is kept: an older version that comes behind that has the row again.
- A record does not wait: a version that comes behind it, though of an earlier time, changes nothing of it any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twopc.operators.functions import function_name
from twopc.operators.how import How, check_join
from twopc.operators.sided import SidedJoin, SidedProcessor
from twopc.operators.versions import BoundVersions, Versions
from twopc.processor import Context
from twopc.record import Record
from twopc.serde import Serde
from twopc.state.forms import Version, VersionOf


class AsOfJoin(SidedProcessor):
    """`versions` is declared by a class of the join's own, with the serde of the table."""

    versions: BoundVersions

    def __init__(self, function: Callable[[Any, Any], Any], how: How, keep_ms: int) -> None:
        self.function, self.how, self.keep_ms = function, how, keep_ms

    def process(self, record: Record, context: Context) -> Record | None:
        is_version, at, now = next(self.are_right), context.timestamp, context.stream_time
        if at is None or now is None:
            raise ValueError("the record has no timestamp, and a join as of a time needs one (timestamp= of a source)")
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
        found = self.versions.as_of(at)
        if found is None and self.how == "inner":
            return None
        return record.replace(value=self.function(record.value, found))

    def on_timer(self, at: int, context: Context) -> None:
        self.versions.forget(at - self.keep_ms)


@dataclass(frozen=True, slots=True)
class JoinAsOf(SidedJoin):
    """(value, what the table had for its key at its time) -> value; the key stays as it is"""

    processor: AsOfJoin
    operator = "join_as_of"
    earlier_ports = ("right",)

    def __str__(self) -> str:
        join = self.processor
        return (
            f"join_as_of({function_name(join.function)}, keep={join.keep_ms}ms, how={join.how!r}, name={self.name!r})"
        )


def join_as_of(function: Callable[[Any, Any], Any], how: Any, name: str, keep_ms: int, serde: Serde) -> JoinAsOf:
    """Return the step that joins a stream with a table whose values this serde encodes."""
    check_join("join_as_of", function, how, How)
    own = type("AsOfJoinOf", (AsOfJoin,), {"versions": Versions(VersionOf(serde))})
    return JoinAsOf(own(function, how, keep_ms), name)
