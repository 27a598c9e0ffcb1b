"""One clock, one queue, one source of dice, one trace.

A blocking call of production code ends up in `World.sleep`, which plays the events of everybody else until its time is
up: so calls interleave as threads would, deterministically, and a process may be killed or paused inside one.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from twopc.crashpoints import CrashPoint
from twopc.protocol.instant import Instant
from twopc.testing.simulation.faults import Faults

EPOCH_MS = 1_700_000_000_000
MOST_EVENTS = 300_000
BUSY_AGAIN_MS = 20


class Crashed(BaseException):
    """The process that runs now is dead: unwinds it, through every `except Exception`."""


class Stuck(Exception):
    """The run does not come to an end."""


@dataclass(eq=False)
class Process:
    """Something that can be killed, or paused and woken. `kind` is for coverage."""

    name: str
    kind: str
    alive: bool = True
    paused_until: int = 0


@dataclass(eq=False)
class Lane:
    """One thread of a process: what runs in it runs one after the other."""

    process: Process
    name: str
    busy: bool = False


@dataclass(slots=True)
class World:
    """The state that all share. Times are milliseconds since the start."""

    seed: int
    faults: Faults
    now_ms: int = 0
    calm: bool = False
    violations: list[str] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)
    keeps_trace: bool = True
    lane: Lane | None = None
    on_crash: list[Callable[[Process], None]] = field(default_factory=list)
    rng: random.Random = field(init=False)
    _trace: list[tuple[int, str, str, tuple[object, ...]]] = field(default_factory=list)
    _queue: list[tuple[int, int, Lane | None, Callable[[], None]]] = field(default_factory=list)
    _sequence: int = 0
    _events: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(f"run-{self.seed}")

    def now(self) -> Instant:
        return Instant(self.now_ms, EPOCH_MS + self.now_ms)

    def monotonic(self) -> float:
        return self.now_ms / 1000

    def note(self, who: str, what: str, *details: object) -> None:
        """Add a line to the trace."""
        if self.keeps_trace:
            self._trace.append((self.now_ms, who, what, details))

    def trace(self) -> list[str]:
        return [
            f"{now:>7} ms  {who:<16} {what} {' '.join(map(str, details))}".rstrip()
            for now, who, what, details in self._trace
        ]

    def violated(self, what: str) -> None:
        self.note("INVARIANT", what)
        self.violations.append(what)

    def happens(self, rate: float) -> bool:
        """Throw the dice for a fault; never in the calm phase."""
        return rate > 0 and not self.calm and self.rng.random() < rate

    def delay(self, most_ms: int) -> int:
        return self.rng.randint(0, most_ms) if most_ms > 0 else 0

    def after(self, delay_ms: int, do: Callable[[], None], lane: Lane | None = None) -> None:
        """Queue an event; one of a lane is dropped if its process is dead by then, and waits while that is paused."""
        self._sequence += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._sequence, lane, do))

    def run_until(self, end_ms: int, stop: Callable[[], bool] = lambda: False) -> None:
        """Play what is due, in order."""
        while self._queue and self._queue[0][0] <= end_ms and not stop():
            at, _, lane, do = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, at)
            self._events += 1
            if self._events > MOST_EVENTS:
                raise Stuck(f"more than {MOST_EVENTS} events")
            if lane is None:
                do()
            elif lane.process.alive:
                self._play(lane, do)
        if not stop():
            self.now_ms = max(self.now_ms, end_ms)

    def _play(self, lane: Lane, do: Callable[[], None]) -> None:
        wait = lane.process.paused_until - self.now_ms
        if wait > 0 or lane.busy:
            self.after(max(wait, BUSY_AGAIN_MS), do, lane)
            return
        try:
            with self.running(lane):
                do()
        except Crashed:
            pass

    @contextmanager
    def running(self, lane: Lane) -> Iterator[None]:
        """Run the body as this lane; a process that dies in it unwinds with Crashed."""
        before, self.lane = self.lane, lane
        lane.busy = True
        try:
            yield
        finally:
            lane.busy = False
            self.lane = before

    def sleep(self, seconds: float) -> None:
        """Block the lane that runs now; everybody else goes on."""
        lane = self.lane
        self.lane = None
        until = self.now_ms + max(1, round(seconds * 1000))
        self.run_until(until)
        while lane is not None and lane.process.alive and lane.process.paused_until > self.now_ms:
            self.run_until(lane.process.paused_until)
        self.lane = lane
        if lane is not None and not lane.process.alive:
            raise Crashed

    def kill(self, process: Process, why: str) -> None:
        """End a process at once; whatever it was doing stops where it is."""
        if not process.alive:
            return
        process.alive = False
        self.note(process.name, "KILLED", why)
        for listen in self.on_crash:
            listen(process)

    def pause(self, process: Process, why: str) -> None:
        duration = self.rng.choice((50, 300, 2_000, 8_000))
        process.paused_until = self.now_ms + duration
        self.note(process.name, "PAUSED", why, f"for {duration} ms")

    def reached(self, point: CrashPoint, *, checkpoint: int = 0, subtask: int = -1) -> None:
        """Production code has come to one of its named places: the process may die or stop here."""
        lane = self.lane
        if lane is None:
            return
        process = lane.process
        self.coverage[f"reached {point.name}"] += 1
        aimed = (
            point is self.faults.aimed_at
            and not self.calm
            and self.coverage[f"reached {point.name}"] == self.faults.aimed_occasion
        )
        if self.happens(self.faults.crash_at_point) or (aimed and not self.faults.aimed_pauses):
            self.coverage[f"crash {point.name}"] += 1
            self.kill(process, f"at {point.name} of {checkpoint}")
            raise Crashed
        if self.happens(self.faults.pause_at_point) or aimed:
            self.coverage[f"pause {point.name}"] += 1
            self.pause(process, f"at {point.name} of {checkpoint}")
            self.sleep(0.001)
