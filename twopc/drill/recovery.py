"""The recovery of a job from each fault: how long it took, and how much was read again.

The job has recovered when a checkpoint is complete that was triggered after the fault: all subtasks run then, and
readers see what comes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from twopc import events
from twopc.drill.verdict import Check
from twopc.kafka.positions.partition_position import offsets_of
from twopc.protocol.facts import SplitPosition

RECOVERY = "recovery"
_FIELDS = 4


@dataclass(frozen=True, slots=True)
class Recovery:
    """One fault, `at` which time it struck, and what it cost; None where it was not over at the end."""

    fault: str
    at: float
    seconds: float | None
    read_again: int

    def __str__(self) -> str:
        took = "not over at the end" if self.seconds is None else f"{self.seconds:.1f} s"
        return f"{self.fault}: recovered after {took}, {self.read_again:,} records read again"


class RecoveryTimes:
    """Follows the events of a run; times are Unix seconds."""

    def __init__(self) -> None:
        self._triggered: dict[tuple[int, int], float] = {}
        self._completed: list[tuple[float, float]] = []

    def note(self, event: events.Event) -> None:
        at = event.time_ms / 1000
        match event:
            case events.CheckpointTriggered(checkpoint_id=number):
                self._triggered.setdefault((event.attempt, number), at)
            case events.CheckpointCompleted(checkpoint_id=number) if (event.attempt, number) in self._triggered:
                self._completed.append((self._triggered[event.attempt, number], at))

    def of(self, strikes: Sequence[tuple[str, float]], again: Sequence[tuple[float, int]]) -> tuple[Recovery, ...]:
        """Return what each fault cost, by name and time, in the order in which they struck.

        `again` is when how many records were begun to be read again.
        """
        following = [*strikes[1:], ("", float("inf"))]
        return tuple(
            Recovery(fault, at, self._seconds(at), sum(n for when, n in again if at <= when < end))
            for (fault, at), (_, end) in zip(strikes, following, strict=False)
        )

    def _seconds(self, struck: float) -> float | None:
        over = [completed for triggered, completed in self._completed if triggered >= struck]
        return min(over) - struck if over else None


@dataclass(frozen=True, slots=True)
class ReadNote:
    """The progress of a reader in a split, `at` Unix seconds, and whether it was `opened` there."""

    at: float
    split: str
    position: int
    opened: bool


def reads_of(log: Path) -> Iterator[ReadNote]:
    """Yield what readers have written there with `note_read`."""
    if log.exists():
        for line in log.read_text().splitlines():
            if len(fields := line.split()) == _FIELDS:
                at, split, position, opened = fields
                yield ReadNote(float(at), split, int(position), opened == "1")


def note_read(log: Path, positions: Iterable[SplitPosition], *, opened: bool) -> None:
    """Write down how far a reader is; where there is no room for it, which a fault may do, it is left out."""
    offsets = offsets_of(positions).items()
    lines = [f"{time.time()} {partition} {offset} {int(opened)}\n" for partition, offset in offsets]
    with suppress(OSError):
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, "".join(lines).encode())
        finally:
            os.close(descriptor)


def reads_again(notes: Iterable[ReadNote]) -> list[tuple[float, int]]:
    """Return when a split was begun again where it had been read, and how many records before its furthest."""
    furthest: dict[str, int] = {}
    found = []
    for note in notes:
        reached = furthest.get(note.split, note.position)
        if note.opened and reached > note.position:
            found.append((note.at, reached - note.position))
        furthest[note.split] = max(note.position, reached)
    return found


def figures_of(recoveries: Sequence[Recovery]) -> Mapping[str, float | None]:
    """Return the numbers that a report begins with."""
    known = [recovery.seconds for recovery in recoveries if recovery.seconds is not None]
    return {
        "longest recovery, s": max(known) if known else None,
        "records read again": float(sum(recovery.read_again for recovery in recoveries)),
    }


def judge_recovery(recoveries: Sequence[Recovery], most_seconds: float) -> Check:
    """Whether the job recovered from each in time."""
    late = [
        f"late: {recovery.fault}: {'not over at the end' if recovery.seconds is None else f'{recovery.seconds:.1f} s'}"
        for recovery in recoveries
        if recovery.seconds is None or recovery.seconds > most_seconds
    ]
    return Check.of(
        RECOVERY,
        late,
        held=f"each of {len(recoveries)} recoveries took no more than {most_seconds:g} s",
        broken=f"{len(late)} of {len(recoveries)} recoveries took more than {most_seconds:g} s",
    )


def judge_catching_up(seconds: float | None, most_seconds: float) -> Check:
    """Whether a restored job had caught up in time."""
    if seconds is None:
        return Check.not_judged(RECOVERY, "how long it took to catch up is not known")
    late = [f"late: caught up after {seconds:.1f} s"] if seconds > most_seconds else []
    return Check.of(
        RECOVERY,
        late,
        held=f"caught up after {seconds:.1f} s, of {most_seconds:g} s that it may take",
        broken=f"it may take no more than {most_seconds:g} s",
    )
