"""The interruption of a replay: its readers stand still in the middle, and all its processes are killed there.

What a function keeps outside its state is gone then, so that the output is not what an uninterrupted run makes. The
kill comes when a checkpoint is complete that was taken while all stood still: what was read is not read again.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from twopc import events
from twopc.drill.delegating_reader import DelegatingReader
from twopc.drill.timeline import RecoveryClock
from twopc.kafka.positions.partition_position import offsets_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import SubtaskIndex
from twopc.record import Batch, Row
from twopc.source import SourceReader

CHECKPOINTS = 2
"""One of so many that complete was triggered when all stood still."""

PATIENCE_SECONDS = 120.0
STILL_SECONDS = 1.0
"""How long a source stands that nobody polls."""

_TURN_SECONDS = 0.05
_GO = "go-on"


def middles(
    starts: Mapping[TopicPartition, Position], ends: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, Position]:
    """Return where each partition is in its middle."""
    return {partition: Position(starts[partition] + (end - starts[partition]) // 2) for partition, end in ends.items()}


class InterruptedReader(DelegatingReader):
    """Reads to the middle of its partitions, says in `folder` that it stands there, and goes on when it is told to."""

    def __init__(
        self,
        reader: SourceReader,
        middle: Mapping[TopicPartition, Position],
        folder: Path,
        subtask: SubtaskIndex,
        source: str,
    ) -> None:
        super().__init__(reader)
        self._middle = middle
        self._folder = folder
        self._stands = folder / f"stands-{subtask}-{source}"
        self._polled_at = time.monotonic()

    def poll(self, timeout: float, most: int) -> Batch | None:
        self._polled_at = time.monotonic()
        if (self._folder / _GO).exists():
            return self.reader.poll(timeout, most)
        at = offsets_of(self.reader.positions()).items()
        left = sum(max(0, self._middle.get(partition, 0) - offset) for partition, offset in at)
        if left:
            return self.reader.poll(timeout, min(most, left))
        self._stands.touch()
        time.sleep(min(timeout, _TURN_SECONDS))
        return None

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        """Nobody polls a source whose records wait for those of another, which stands: so it stands, too."""
        if time.monotonic() - self._polled_at > STILL_SECONDS:
            self._stands.touch()
        return super().positions(waiting)

    def finished(self) -> bool:
        """Nobody polls one of several sources that is at its end: it stands there all the same."""
        at_end = self.reader.finished()
        if at_end and not self._stands.exists():
            self._stands.touch()
        return at_end


@dataclass
class Interruption:
    """Follows a run of so many `sources` by its events, and kills its processes once, in the middle.

    `stood_at` and `struck_at` are Unix seconds; `struck_at` stays None where no checkpoint came in time. `clock`
    follows what comes after the kill.
    """

    folder: Path
    parallelism: int
    sources: int = 1
    stood_at: float | None = None
    struck_at: float | None = None
    clock: RecoveryClock | None = None
    _attempt: int = 0
    _pids: dict[int, int] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)
    _completed: int = 0

    def note(self, event: events.Event) -> None:
        if self.clock is not None and event.attempt > self._attempt:
            self.clock.note(event)
        if not (self.folder / _GO).exists():
            self._follow(event)

    def caught_up(self, first: RecoveryClock) -> float | None:
        """Return how long it took to read to the end, without the time that was spent in the middle.

        `first` is the clock of what came before the kill. Subtasks report late: that they are restored, too.
        """
        if self.clock is None or self.stood_at is None:
            return None
        restored, end = self.clock.restored, self.clock.caught_up
        if restored is None or end is None:
            return None
        return max(self.stood_at - first.began, first.restored or 0.0) + max(0.0, end - restored)

    def _follow(self, event: events.Event) -> None:
        now = time.time()
        if isinstance(event, events.SubtaskAttached):
            self._attempt = event.attempt
            self._pids[event.subtask] = event.pid
        elif isinstance(event, events.EndOfInput):
            self._ended.add(event.subtask)
        elif isinstance(event, events.CheckpointCompleted) and self.stood_at is not None:
            self._completed += 1
        if self.stood_at is None:
            if all(map(self._stands, range(self.parallelism))):
                self.stood_at = now
        elif self._completed >= CHECKPOINTS:
            self._inject(now)
        elif now > self.stood_at + PATIENCE_SECONDS:
            (self.folder / _GO).touch()

    def _stands(self, subtask: int) -> bool:
        return subtask in self._ended or len(list(self.folder.glob(f"stands-{subtask}-*"))) >= self.sources

    def _inject(self, now: float) -> None:
        self.struck_at = now
        self.clock = RecoveryClock(now, self.parallelism)
        for pid in set(self._pids.values()) - {os.getpid(), 0}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        (self.folder / _GO).touch()
