"""The phases of a checkpoint by subtask, ready for JSON: of its trace, or of what the ledger has kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from twopc.checkpoints.times import CheckpointTimes
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.tracing.checkpoints import SUBTASK
from twopc.tracing.span import Span

Row = dict[str, Any]

SHOWN = ("trigger", "pre-commit", "store", "completion", "commit")
"""The phases, in their order; each is of one subtask but the completion."""


def row_of_trace(trace: Span) -> Row:
    """Return one checkpoint with its phases. Moments are Unix milliseconds."""
    return {
        "checkpoint_id": trace.attributes["twopc.checkpoint.id"],
        "attempt": trace.attributes["twopc.attempt"],
        "kind": trace.attributes["twopc.checkpoint.kind"],
        "label": trace.attributes.get("twopc.checkpoint.label", ""),
        "start_ms": trace.start_ms,
        "end_ms": trace.end_ms,
        "error": trace.error,
        "parts": [_part(span.name, span.start_ms, span.end_ms, span.attributes.get(SUBTASK)) for span in _spans(trace)],
    }


def row_of_times(completed: CompletedCheckpoint, times: CheckpointTimes) -> Row:
    """Return the same of a completed checkpoint, as far as its phases were written down."""
    record = completed.record
    begun = times.triggered_ms
    parts = []
    for subtask, timing in times.subtasks.items():
        taken_up = begun + timing.waited_ms
        paused = taken_up + timing.pause_ms
        parts += [
            _part("trigger", begun, taken_up, subtask),
            _part("pre-commit", taken_up, paused, subtask),
            _part("store", paused, paused + timing.store_ms, subtask),
        ]
    end = times.completed_ms or times.acknowledged_ms
    if times.completed_ms is not None:
        parts.append(_part("completion", times.acknowledged_ms, times.completed_ms))
        if times.confirmed_ms is not None:
            end = times.confirmed_ms
            parts.append(_part("commit", times.completed_ms, end))
    return {
        "checkpoint_id": completed.checkpoint_id,
        "attempt": record.attempt,
        "kind": record.kind.value,
        "label": record.label,
        "start_ms": begun,
        "end_ms": end,
        "error": "",
        "parts": parts,
    }


def newest_rows(traced: Iterable[Row], stored: Iterable[Row], most: int) -> list[Row]:
    """Return the newest, newest first; where a checkpoint is in both, its trace has more."""
    rows = {row["checkpoint_id"]: row for row in stored} | {row["checkpoint_id"]: row for row in traced}
    return sorted(rows.values(), key=lambda row: (row["start_ms"], row["checkpoint_id"]), reverse=True)[:most]


def _spans(trace: Span) -> Iterator[Span]:
    for span in trace.children:
        yield from _spans(span)
        if span.name in SHOWN:
            yield span


def _part(name: str, start_ms: float, end_ms: float, subtask: Any = None) -> Row:
    return {"name": name, "subtask": subtask, "start_ms": start_ms, "end_ms": end_ms}
