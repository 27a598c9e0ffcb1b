"""What a driver does before the first record of an attempt, in an order that must not change.

1. Every committable of the latest completed checkpoint is settled by asking the broker: a completed checkpoint is a
   promise, whatever is restored afterwards.
2. The confirmations are stored.
3. Only then is any transactional id initialised again, and what lingers aborted: initialising destroys the evidence
   that step 1 needs, and fences a zombie of an earlier attempt.
4. The source is planned: every start and stop becomes a number.

A crash anywhere in here is harmless: all of it is done again by the next attempt, and each step is idempotent.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twopc.crashpoints import CrashPoint, reached
from twopc.errors import TransactionLost
from twopc.protocol.facts import CheckpointMetadata, PartitionPosition
from twopc.protocol.ids import Position, TopicPartition
from twopc.rpc.job_client import JobClient, StartedAttempt
from twopc.sink import JobContext, Outcome, Settled, TwoPhaseCommitSink
from twopc.source import Source, Split

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery found and did; `lingering` names the transactions that were aborted."""

    settled: tuple[Settled, ...]
    lingering: tuple[str, ...]


def recover(
    client: JobClient, sink: TwoPhaseCommitSink[Any], context: JobContext, started: StartedAttempt
) -> Recovered:
    """Settle, confirm, abort what lingers; raise TransactionLost if a committed checkpoint's output is gone."""
    settled: list[Settled] = []
    latest = started.latest
    reached(CrashPoint.DRIVER_BEFORE_SETTLE, checkpoint=0 if latest is None else latest.checkpoint_id)
    if latest is not None:
        settled = sink.recover(context, latest.committables, started.confirmed)
        reached(CrashPoint.DRIVER_AFTER_SETTLE, checkpoint=latest.checkpoint_id)
        kept = [item.committable.name for item in settled if item.outcome is not Outcome.LOST]
        new = [name for name in kept if name not in started.confirmed]
        if new:
            client.confirm(context.job, context.attempt, latest.checkpoint_id, new)
        reached(CrashPoint.DRIVER_AFTER_CONFIRM, checkpoint=latest.checkpoint_id)
        refuse_losses(latest, settled)
    lingering = sink.abort_lingering(context)
    reached(CrashPoint.DRIVER_AFTER_ABORT_LINGERING, checkpoint=0 if latest is None else latest.checkpoint_id)
    return Recovered(tuple(settled), tuple(lingering))


def refuse_losses(latest: CheckpointMetadata, settled: Sequence[Settled]) -> None:
    """Raise TransactionLost if any committable is gone, naming the input whose output is missing."""
    lost = [item for item in settled if item.outcome is Outcome.LOST]
    if not lost:
        return
    subtasks = {item.committable.subtask for item in lost}
    reach = ", ".join(
        f"{position.partition} up to offset {position.position}"
        for snapshot in latest.snapshots
        if snapshot.subtask in subtasks
        for position in snapshot.positions
    )
    evidence = "; ".join(f"{item.committable.name}: {item.evidence}" for item in lost)
    raise TransactionLost(
        f"{len(lost)} pre-committed transaction(s) of completed checkpoint {latest.checkpoint_id} can't be committed "
        f"any more, so the output of their input is missing: {evidence}. The input concerned: {reach or 'unknown'}, "
        "from the position of the checkpoint before. Nothing else was changed. To go on without that output: "
        "--from none (start from the group's offsets), or name an earlier checkpoint with --from to write it again "
        "(and what other subtasks wrote since then twice)."
    )


class Planner:
    """Plans the splits of each attempt, and remembers symbolic offsets that were resolved earlier in this run.

    Before a first checkpoint has completed there is nothing to restore: an attempt after a failure must then start
    where the first one did, not at today's "latest", or records between the two would be skipped.
    """

    def __init__(self, source: Source, *, bounded: bool) -> None:
        self._source = source
        self._bounded = bounded
        self._starts: dict[TopicPartition, PartitionPosition] = {}
        self._stops: dict[TopicPartition, Position | None] = {}

    def plan(self, context: JobContext, restored: CheckpointMetadata | None) -> list[Split]:
        """Return every split of the job for this attempt."""
        positions: Mapping[TopicPartition, PartitionPosition] = self._starts
        if restored is not None:
            positions = {position.partition: position for position in restored.positions}
        splits = self._source.plan(context, positions, self._bounded)
        for split in splits:
            start = PartitionPosition(split.partition, split.topic_id, split.start)
            self._starts.setdefault(split.partition, start)
            self._stops.setdefault(split.partition, split.stop)
        return [Split(split.partition, split.topic_id, split.start, self._stops[split.partition]) for split in splits]


def assign(splits: Sequence[Split], parallelism: int) -> list[tuple[Split, ...]]:
    """Deal the splits out to the subtasks, in turn, in the order of topic and partition."""
    ordered = sorted(splits, key=lambda split: split.partition)
    return [tuple(ordered[index::parallelism]) for index in range(parallelism)]
