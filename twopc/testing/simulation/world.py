"""One clock, one queue, one source of dice, one trace.

A blocking call of production code ends up in `World.sleep`, which plays the events of everybody else until its time is
up: so calls interleave as threads would, deterministically, and a process may be killed or paused inside one.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from twopc.crashpoints import CrashPoint
from twopc.protocol.instant import Instant
from twopc.testing.simulation.dice import Dice, Strike
from twopc.testing.simulation.faults import Faults

EPOCH_MS = 1_700_000_000_000
MOST_EVENTS = 300_000
PAUSE_MS = (50, 300, 2_000, 8_000)

T = TypeVar("T")


class Crashed(BaseException):
    """The process that runs now is dead: unwinds it, through every `except Exception`."""


class Stuck(Exception):
    """The run does not come to an end."""


@dataclass(eq=False, slots=True)
class Process:
    """Something that can be killed, or paused and woken. `kind` is for coverage."""

    name: str
    kind: str
    alive: bool = True
    paused_until: int = 0


@dataclass(eq=False, slots=True)
class Lane:
    """One thread of a process: what runs in it runs one after the other; what comes while it is busy waits."""

    process: Process
    name: str
    busy: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)


_ITS_DEATH = suppress(Crashed)
_START = Instant(0, EPOCH_MS)


class _Names(NamedTuple):
    """How a point is called in the coverage, and in strikes."""

    reached: str
    crash: str
    pause: str


_NAMES = {point: _Names(f"reached {point.name}", f"crash {point.name}", f"pause {point.name}") for point in CrashPoint}


@dataclass(slots=True)
class World:
    """The state that all share. Times are milliseconds since the start. `over` ends the phase that is being played."""

    seed: int
    faults: Faults
    only: frozenset[Strike] | None = None
    now_ms: int = 0
    calm: bool = False
    over: bool = False
    violations: list[str] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)
    keeps_trace: bool = True
    lane: Lane | None = None
    on_crash: list[Callable[[Process], None]] = field(default_factory=list)
    dice: Dice = field(init=False)
    rng: random.Random = field(init=False)
    _trace: list[tuple[int, str, str, tuple[object, ...]]] = field(default_factory=list)
    _queue: list[tuple[int, int, Lane | None, Callable[[], None]]] = field(default_factory=list)
    _sequence: int = 0
    _now: Instant = _START
    _events: int = 0

    def __post_init__(self) -> None:
        self.dice = Dice(self.seed, self.only)
        self.rng = random.Random(f"run-{self.seed}")

    def now(self) -> Instant:
        if self._now.monotonic_ms != self.now_ms:
            self._now = Instant(self.now_ms, EPOCH_MS + self.now_ms)
        return self._now

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

    def violated(self, what: str, details: object = "") -> None:
        """Enter a broken invariant: which one, and how it was broken here."""
        self.violations.append(f"{what}: {details}" if details else what)
        self.note("INVARIANT", self.violations[-1])
        self.over = True

    def strikes(self, kind: str, rate: float, where: str = "") -> int:
        """Whether a fault strikes here; never in the calm phase. The answer decides its details, see `of`."""
        if rate <= 0 or self.calm:
            return 0
        if not where:
            where = self.lane.process.name if self.lane is not None else "world"
        return self.dice.throw(kind, where, rate)

    def delay(self, most_ms: int) -> int:
        return int(self.rng.random() * (most_ms + 1)) if most_ms > 0 else 0

    def between(self, low_ms: int, high_ms: int) -> int:
        return low_ms + int(self.rng.random() * (high_ms - low_ms + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.random() * len(choices))]

    @staticmethod
    def of(choices: Sequence[T], strike: int) -> T:
        """What a strike chooses."""
        return choices[strike % len(choices)]

    def after(self, delay_ms: int, do: Callable[[], None], lane: Lane | None = None) -> None:
        """Queue an event; one of a lane is dropped if its process is dead by then, and waits while that is paused."""
        self._sequence += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._sequence, lane, do))

    def run_until(self, end_ms: int, *, to_the_end: bool = True) -> None:
        """Play what is due, in order; stop when it is `over`, unless it has to be played `to_the_end`."""
        queue = self._queue
        while queue and queue[0][0] <= end_ms and (to_the_end or not self.over):
            at, _, lane, do = heapq.heappop(queue)
            if at > self.now_ms:
                self.now_ms = at
            self._events += 1
            if self._events > MOST_EVENTS:
                raise Stuck(f"more than {MOST_EVENTS} events")
            if lane is None:
                do()
            elif lane.process.alive:
                self._play(lane, do)
        if to_the_end or not self.over:
            self.now_ms = max(self.now_ms, end_ms)

    def _play(self, lane: Lane, do: Callable[[], None]) -> None:
        if lane.busy:
            lane.waiting.append(do)
        elif lane.process.paused_until > self.now_ms:
            self.after(lane.process.paused_until - self.now_ms, do, lane)
        else:
            with _ITS_DEATH:
                self.run_as(lane, do)

    def run_as(self, lane: Lane, do: Callable[[], T]) -> T:
        """Let this lane do something; a process that dies in it unwinds with Crashed."""
        before, self.lane = self.lane, lane
        lane.busy = True
        try:
            return do()
        finally:
            lane.busy = False
            self.lane = before
            if lane.waiting:
                for each in lane.waiting:
                    self.after(0, each, lane)
                lane.waiting.clear()

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

    def pause(self, process: Process, why: str, strike: int) -> None:
        duration = self.of(PAUSE_MS, strike)
        process.paused_until = self.now_ms + duration
        self.note(process.name, "PAUSED", why, f"for {duration} ms")

    def reached(self, process: Process, point: CrashPoint, checkpoint: int) -> None:
        """Production code has come to one of its named places: the process may die or stop here."""
        names = _NAMES[point]
        self.coverage[names.reached] += 1
        if self.calm:
            return
        faults, throw = self.faults, self.dice.throw
        aimed = point is faults.aimed_at and self.coverage[names.reached] == faults.aimed_occasion
        if throw(names.crash, process.name, 1.0 if aimed and not faults.aimed_pauses else faults.crash_at_point):
            self.coverage[names.crash] += 1
            self.kill(process, f"at {point.name} of {checkpoint}")
            raise Crashed
        strike = throw(names.pause, process.name, 1.0 if aimed else faults.pause_at_point)
        if strike:
            self.coverage[names.pause] += 1
            self.pause(process, f"at {point.name} of {checkpoint}", strike)
            self.sleep(0.001)
