"""From where to where a drill replays and compares: fixed once, so that a job that runs beside it changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from twopc.checkpoints.catalog import CheckpointEntry, JobCheckpoints
from twopc.drill.broker import Cluster
from twopc.drill.comparing import Ends
from twopc.drill.judging import Ranges, complete_up_to, repeated_input
from twopc.errors import ConfigurationError
from twopc.kafka.committable import PreparedTransaction
from twopc.kafka.positions import offsets_of
from twopc.protocol.facts import CheckpointMetadata


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the replay starts and ends, and `required`: up to where the job's own output must be there.

    `written` is what could be seen of the job's output. Where a function chooses the topic, those are meant that a
    transaction of a checkpoint that is kept names: none may be. `repeated` is what the job wrote a second time when it
    went back, in words, as far as the positions of checkpoints tell.
    """

    starts: Ends
    ends: Ends
    required: Ends
    written: Ranges
    repeated: tuple[str, ...] = ()

    @property
    def to_replay(self) -> int:
        return sum(end - self.starts[each] for each, end in self.ends.items())

    @classmethod
    def fix(
        cls,
        metadata: CheckpointMetadata,
        found: JobCheckpoints,
        source: Cluster,
        inputs: Sequence[str],
        sink: Cluster,
        output: Any,
    ) -> Reach:
        """Ask for the ends. The output's come first: what is visible by then, the replay must make."""
        kept = found.completed
        topics = [output] if isinstance(output, str) else _named(kept)
        written = sink.ranges(sink.control.topics(topics))
        if isinstance(output, str) and not written:
            raise ConfigurationError(f"output topic {output!r} isn't there: the job could not write either")
        log_ends = sink.log_ends(written)
        nothing_open = all(log_ends[each] <= end for each, (_, end) in written.items())
        read = source.ranges(source.control.topics(inputs))
        held = offsets_of(metadata.positions)
        starts = {each: held.get(each, first) for each, (first, _) in read.items()}
        complete = complete_up_to([(each.metadata, _is_committed(each)) for each in kept], nothing_open=nothing_open)
        required = {} if complete is None else offsets_of(complete.positions)
        return cls(
            starts=starts,
            ends={each: max(end, starts[each]) for each, (_, end) in read.items()},
            required={each: max(required.get(each, start), start) for each, start in starts.items()},
            written=written,
            repeated=tuple(repeated_input(_since(metadata, found))),
        )

    def partitions(self) -> int:
        """How many partitions the scratch output has: as many as the real one, so that keys meet the same others."""
        return 1 + max((each.partition for each in self.written or self.starts), default=0)


def _since(metadata: CheckpointMetadata, found: JobCheckpoints) -> list[CheckpointMetadata]:
    """The checkpoint and those that followed it; before those of the current attempt, what that was restored from.

    None, if output was lost after it: that is written again rightly.
    """
    later = [each for each in found.completed if each.checkpoint_id >= metadata.checkpoint_id]
    if any(each.losses for each in later):
        return []
    since = [each.metadata for each in later if each.metadata is not None]
    started = found.state.attempt
    if started is not None:
        known = [each.metadata for each in found.completed if each.checkpoint_id == started.restored and each.metadata]
        place = next((n for n, each in enumerate(since) if each.attempt >= started.attempt), len(since))
        since[place:place] = [replace(each, attempt=started.attempt) for each in known]
    return since


def _named(kept: Sequence[CheckpointEntry]) -> list[str]:
    """The topics that the transactions of these checkpoints wrote to."""
    every = (item for each in kept if each.metadata is not None for item in each.metadata.committables)
    return sorted({topic for item in every for topic in PreparedTransaction.from_committable(item).topic_ids})


def _is_committed(entry: CheckpointEntry) -> bool:
    """Whether every transaction of the checkpoint is known to be committed."""
    return entry.metadata is not None and {item.name for item in entry.metadata.committables} <= entry.confirmed
