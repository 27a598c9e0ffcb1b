"""All that the page shows of a job, as one value that is ready for JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from twopc.checkpoints.catalog import CheckpointEntry, JobCheckpoints
from twopc.checkpoints.times import times_of
from twopc.protocol.facts import in_order, position_text
from twopc.protocol.history import History
from twopc.protocol.job_description import JobDescription
from twopc.protocol.outcomes import AttemptOutcome
from twopc.ui.timeline import Row, newest_rows, row_of_times

TIMELINE = 30
"""The checkpoints of which the phases are shown."""

NO_ATTEMPT, NOT_FOUND = "no attempt", "no run found here"


@dataclass(frozen=True, slots=True)
class OwnFacts:
    """What only the process that runs a job knows of it: its graph, its settings, and its topics of dead letters."""

    graph: Mapping[str, Any] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    letter_topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of a job at a moment. `problem` says what could not be asked or read."""

    job: str
    described: JobDescription | None
    stored: JobCheckpoints | None
    traces: Sequence[Row] = ()
    problem: str = ""

    @property
    def history(self) -> History:
        return History() if self.stored is None else self.stored.state.history

    @property
    def phase(self) -> str:
        """What the job does, in a word or two."""
        if self.described is not None:
            return self.described.phase
        attempts = self.history.attempts
        if not attempts:
            return NO_ATTEMPT
        # One that has not ended in order may run on another machine: nobody here can know.
        outcome = attempts[-1].outcome
        return NOT_FOUND if outcome is AttemptOutcome.RUNNING else f"not running: {outcome}"


def overview(sight: Sight) -> Row:
    """Return a job as a line of the list."""
    newest = sight.stored.completed[-1] if sight.stored is not None and sight.stored.completed else None
    kept = sight.described.kept[-1] if sight.described is not None and sight.described.kept else None
    return {
        "job": sight.job,
        "phase": sight.phase,
        "runs": sight.described is not None,
        "problem": sight.problem or ("" if sight.described is None else sight.described.problem),
        "checkpoint_id": kept.checkpoint_id if kept else newest.checkpoint_id if newest else None,
        "completed_ms": kept.completed_ms if kept else newest.completed.record.acknowledged_ms if newest else None,
    }


def document(sight: Sight, own: OwnFacts) -> Row:
    """Return all of it. `described` is None where the job does not run, `graph` where its process is another one."""
    described = sight.described
    return overview(sight) | {
        "described": None if described is None else asdict(described),
        "graph": own.graph,
        "settings": own.settings,
        "versions": own.versions,
        "letter_topics": list(own.letter_topics),
        "timeline": newest_rows(sight.traces, _stored_rows(sight.stored), TIMELINE),
        "checkpoints": [asdict(each) for each in reversed(sight.history.checkpoints)],
        "attempts": [asdict(each) for each in reversed(sight.history.attempts)],
        "latest": _latest(sight.stored),
    }


def _stored_rows(stored: JobCheckpoints | None) -> list[Row]:
    entries = () if stored is None else stored.completed
    return [
        row_of_times(entry.completed, times_of(entry.metadata, entry.completed))
        for entry in entries
        if entry.metadata is not None
    ]


def _latest(stored: JobCheckpoints | None) -> Row | None:
    """Return what is restored from the newest checkpoint: positions and transactions."""
    if stored is None or not stored.completed:
        return None
    entry = stored.completed[-1]
    return {
        "checkpoint_id": entry.checkpoint_id,
        "place": entry.place,
        "damage": entry.damage,
        "positions": _positions(entry),
        "outstanding": sorted(entry.completed.outstanding),
    }


def _positions(entry: CheckpointEntry) -> list[Row]:
    held = () if entry.metadata is None else in_order(entry.metadata.positions)
    return [{"source": each.source, "split": each.split, "position": position_text(each.position)} for each in held]
