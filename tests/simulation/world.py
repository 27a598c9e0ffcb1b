"""One clock, one queue, one source of dice, one trace.

A blocking call of production code ends up in `World.sleep`, which plays the events of everybody else until its time is
up: so calls interleave as threads would, deterministically, and a process may be killed or paused inside one.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from tests.simulation.dice import Dice, Strike
from tests.simulation.faults import Faults
from tests.simulation.points import POINT_NAMES, Chances, PointNames
from tests.simulation.process import Crashed, Lane, Process, Stuck
from twopc.faults.points import CrashPoint
from twopc.protocol.times import Instant

EPOCH_MS = 1_700_000_000_000
MOST_EVENTS = 300_000
LONGEST_UPTIME_MS = 1_000_000_000
PAUSE_MS = (50, 300, 2_000, 8_000)

T = TypeVar("T")


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
    coverage: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    keeps_trace: bool = True
    lane: Lane | None = None
    peers: Callable[[Process], Enum] | None = None
    stop_another: Callable[[Process], None] = lambda process: None
    on_crash: list[Callable[[Process], None]] = field(default_factory=list)
    dice: Dice = field(init=False)
    rng: random.Random = field(init=False)
    _trace: list[tuple[int, str, str, tuple[object, ...]]] = field(default_factory=list)
    _queue: list[tuple[int, int, Lane | None, Callable[[], None]]] = field(default_factory=list)
    _sequence: int = 0

    def __post_init__(self) -> None:
        self.dice = Dice(self.seed, self.only)
        self.rng = random.Random(f"run-{self.seed}")

    def now(self) -> Instant:
        """What the clock of the broker says, and of who looks on."""
        return Instant(self.now_ms, EPOCH_MS + self.now_ms)

    def monotonic(self) -> float:
        """What the monotonic clock of the process that runs now says, in seconds."""
        offset = self.lane.process.monotonic_ms if self.lane is not None else 0
        return (self.now_ms + offset) / 1000

    def process(self, name: str, kind: str) -> Process:
        """Start a process on a machine of its own, with its own idea of the time."""
        skew = self.faults.clock_skew_ms
        return Process(
            name,
            kind,
            monotonic_ms=self.between(0, LONGEST_UPTIME_MS),
            skew_ms=self.between(-skew, skew) if skew else 0,
        )

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
            if self._sequence > MOST_EVENTS:
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
            return
        process = lane.process
        if process.paused_until > self.now_ms:
            self.after(process.paused_until - self.now_ms, do, lane)
            return
        before, self.lane = self.lane, lane
        lane.busy = True
        try:
            do()
        except Crashed:
            pass
        except Stuck:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, the run's verdict names it
            self.violated(f"a {process.kind} failed with {type(error).__name__}", error)
        finally:
            self.lane = before
            self._free(lane)

    def run_as(self, lane: Lane, do: Callable[[], T]) -> T:
        """Let this lane do something; a process that dies in it unwinds with Crashed."""
        before, self.lane = self.lane, lane
        lane.busy = True
        try:
            return do()
        finally:
            self.lane = before
            self._free(lane)

    def _free(self, lane: Lane) -> None:
        """What came while the lane was busy has its turn."""
        lane.busy = False
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
        since = max(self.now_ms, process.paused_until)
        process.paused_until = max(since, self.now_ms + duration)
        if strike // len(PAUSE_MS) % 2:
            # The machine slept: its monotonic clock stood still.
            process.monotonic_ms -= process.paused_until - since
        self.note(process.name, "PAUSED", why, f"for {duration} ms")

    def reached(self, process: Process, point: CrashPoint, checkpoint: int) -> None:
        """Production code has come to one of its named places: the process may die or stop here.

        The one strike that is aimed at a place comes in the calm phase too, if it was not reached before.
        """
        names = POINT_NAMES[point._value_.code]  # by a string: the hash of a member of an enumeration is Python's
        self.coverage[names.reached] += 1
        faults = self.faults
        if point is faults.aimed_at:
            aimed = self.coverage[names.reached] == faults.aimed_occasion
        elif self.calm:
            return
        else:
            aimed = False
        nth = self.dice.occasion(names.reached, process.name)
        crash = pause = 0.0
        if not self.calm:
            crash = faults.crash_in_recovery if names.in_recovery else faults.crash_at_point
            pause = faults.pause_at_point
        if not aimed and self.only is None:
            either = crash + pause
            if self.dice.spares(either):
                return
            crash, pause = crash / either, 1.0
        self._may_stop(process, names, nth, Chances(aimed, crash, pause), checkpoint)

    def _may_stop(self, process: Process, names: PointNames, nth: int, chances: Chances, checkpoint: int) -> None:
        aimed, crash, pause = chances
        faults, throw = self.faults, self.dice.throw_at
        if throw(nth, names.company, process.name, 1.0 if aimed and faults.aimed_in_company else 0.0):
            self.stop_another(process)
        if throw(nth, names.crash, process.name, 1.0 if aimed and not faults.aimed_pauses else crash):
            self.coverage[names.crash] += 1
            self._cover(process, names)
            self.kill(process, f"at {names.point} of {checkpoint}")
            raise Crashed
        strike = throw(nth, names.pause, process.name, 1.0 if aimed else pause)
        if strike:
            self.coverage[names.pause] += 1
            self._cover(process, names)
            self.pause(process, f"at {names.point} of {checkpoint}", strike)
            self.sleep(0.001)

    def _cover(self, process: Process, names: PointNames) -> None:
        if self.peers is not None:
            self.coverage[f"cell {names.point} {self.peers(process).name}"] += 1
