"""The times of a checkpoint's phases, as tables for people; a dash stands for what nobody has written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from twopc.cli.tables import moment, table

UNKNOWN = "-"
NOTHING_TO_CONFIRM = "not written down: no transaction"

_STEPS = {
    "triggered_ms": "triggered",
    "acknowledged_ms": "acknowledged by all subtasks",
    "completed_ms": "completed: durable, and subtasks told to commit",
    "confirmed_ms": "all transactions confirmed",
}
_PHASES = {
    "waited_ms": "waited",
    "pre_commit_ms": "pre-commit",
    "pause_ms": "loop stood still",
    "write_ms": "snapshot written",
    "store_ms": "stored",
    "acknowledged_ms": "acknowledged after",
}


def time_tables(description: Mapping[str, Any]) -> Iterable[Table]:
    """The times of the whole checkpoint, then those of each subtask's part."""
    times, subtasks = description["times"], [each["subtask"] for each in description["snapshots"]]
    unknown = UNKNOWN if description["committables"] else NOTHING_TO_CONFIRM
    yield table("Times", ("step", "at", "after the trigger"), [_step(times, name, unknown) for name in _STEPS])
    measured = {each["subtask"]: each for each in times["subtasks"]}
    yield table(
        "Times of each subtask, ms",
        ("subtask", *_PHASES.values()),
        [(str(subtask), *(_figure(measured.get(subtask), name) for name in _PHASES)) for subtask in subtasks],
    )


def _step(times: Mapping[str, Any], name: str, unknown: str) -> tuple[str, ...]:
    at = times[name]
    if at is None:
        return (_STEPS[name], unknown, UNKNOWN)
    return (_STEPS[name], moment(at), f"{at - times['triggered_ms']:,} ms")


def _figure(measured: Mapping[str, Any] | None, name: str) -> str:
    return UNKNOWN if measured is None else f"{measured[name]:,.1f}"
