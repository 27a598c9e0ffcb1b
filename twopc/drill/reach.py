"""From where to where a drill replays and compares: fixed once, so that a job that runs beside it changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twopc.checkpoints import CheckpointEntry
from twopc.drill.broker import Cluster
from twopc.drill.comparing import Ends
from twopc.drill.judging import Ranges, complete_up_to
from twopc.errors import ConfigurationError
from twopc.protocol.facts import CheckpointMetadata


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the replay starts and ends, and `required`: up to where the job's own output must be there.

    `topic` is the job's output, and `written` what could be seen of it; both are empty if a function chooses the topic.
    """

    starts: Ends
    ends: Ends
    required: Ends
    topic: str
    written: Ranges

    @property
    def to_replay(self) -> int:
        return sum(end - self.starts[each] for each, end in self.ends.items())

    @classmethod
    def fix(
        cls,
        metadata: CheckpointMetadata,
        kept: Sequence[CheckpointEntry],
        source: Cluster,
        inputs: Sequence[str],
        sink: Cluster,
        output: Any,
    ) -> Reach:
        """Ask for the ends. The output's come first: what is visible by then, the replay must make."""
        topic = output if isinstance(output, str) else ""
        written = sink.ranges(sink.control.topics([topic])) if topic else {}
        log_ends = sink.log_ends(written)
        nothing_open = all(log_ends[each] <= end for each, (_, end) in written.items())
        read = source.ranges(source.control.topics(inputs))
        held = {each.partition: each.position for each in metadata.positions}
        starts = {each: held.get(each, first) for each, (first, _) in read.items()}
        complete = complete_up_to([(each.metadata, _is_committed(each)) for each in kept], nothing_open=nothing_open)
        required = {} if complete is None else {each.partition: each.position for each in complete.positions}
        return cls(
            starts=starts,
            ends={each: max(end, starts[each]) for each, (_, end) in read.items()},
            required={each: max(required.get(each, start), start) for each, start in starts.items()},
            topic=topic,
            written=written,
        )

    def partitions(self) -> int:
        """How many partitions the scratch output has: as many as the real one, so that keys meet the same others."""
        if self.topic and not self.written:
            raise ConfigurationError(f"output topic {self.topic!r} isn't there: the job could not write either")
        return len(self.written) or len(self.starts)


def _is_committed(entry: CheckpointEntry) -> bool:
    """Whether every transaction of the checkpoint is known to be committed."""
    return entry.metadata is not None and {item.name for item in entry.metadata.committables} <= entry.confirmed
