"""Breaks of what passes with time: of windows and timers, and of a drain, which lets all time pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.simulation.mutants import Mutant, instead
from tests.simulation.mutants_of_records import pop_for_now
from twopc.operators.aligned_windows import AlignedWindows
from twopc.operators.key_timers import KeyTimers
from twopc.operators.marked_times import MarkedTimes
from twopc.operators.process import ProcessOperator
from twopc.operators.session_windows import SessionWindows
from twopc.operators.sliding_windows import SlidingWindows
from twopc.operators.source_times import SourceTimes
from twopc.operators.stored_numbers import StreamTime
from twopc.operators.time_queue import TimeQueue
from twopc.operators.timed_operators import TimedOperators
from twopc.operators.window_kind import REMEMBERED, Change
from twopc.operators.windows import WindowOperator
from twopc.protocol.subtask_state import SubtaskState
from twopc.runtime.repartition_times import RepartitionTimes
from twopc.runtime.subtask import Subtask

_on, _step, _drain = SubtaskState.on, Subtask.step, Subtask._drain
_pop, _write_back, _put_out = TimeQueue.pop, TimeQueue.write_back, WindowOperator._put_out
_advance, _pass_time, _numbered = WindowOperator._advance, ProcessOperator.pass_time, TimedOperators.drain
_aligned, _session, _built = AlignedWindows.change, SessionWindows.change, AlignedWindows.__init__
_slid, _one = SlidingWindows.change, ProcessOperator._one


def _moved_by_records(operator: Any, *of: Any) -> Any:
    operator._by_marks = False
    return _one(operator, *of)


def _at_every_end(state: Any, message: Any) -> Any:
    """Take every end of input for a drain."""
    state.draining = True
    return _on(state, message)


def _drain_at_every_end(subtask: Any, stages: int) -> None:
    subtask._state.draining = True
    _drain(subtask, stages)


@contextmanager
def _said_first() -> Iterator[None]:
    """Let time pass in the turn behind that in which the end was said."""

    def step(subtask: Any) -> None:
        due = vars(subtask).pop("_due", ())
        _step(subtask)
        for stages in due:
            _drain(subtask, stages)

    def later(subtask: Any, stages: int) -> None:
        vars(subtask).setdefault("_due", []).append(stages)

    with ExitStack() as stack:
        stack.enter_context(instead(Subtask, "step", step)())
        stack.enter_context(instead(Subtask, "_drain", later)())
        yield


def _keep_closed(operator: Any, partition: Any, now: int, row: Any, rest: Any) -> bool:
    """Put out what is over, and leave the state of a key that has no window any more where it is stored."""
    is_all = _put_out(operator, partition, now, row, rest)
    _, dirty = operator._cache.of(partition.number)
    for key in [key for key, windows in dirty.items() if windows is None]:
        del dirty[key]
    return is_all


@contextmanager
def _closed_for_now() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(instead(WindowOperator, "_put_out", _keep_closed)())
        stack.enter_context(instead(TimeQueue, "pop", pop_for_now)())
        yield


def _pop_last(queue: Any, until: int) -> Any:
    """Take the last of the entries that are due."""
    due = []
    while (each := _pop(queue, until)) is not None:
        due.append(each)
    for each in due[:-1]:
        queue.add(*each)
    return due[-1] if due else None


def _count_late(kind: Any, windows: Any, stamp: int, now: int, value: Any) -> Any:
    return _aligned(kind, windows, stamp, stamp, value)


def _join_none(kind: Any, windows: Any, stamp: int, now: int, value: Any) -> Any:
    """Make a session of each record that is near to more than one other."""
    change = _session(kind, windows, stamp, now, value)
    return _session(kind, {}, stamp, now, value) if change is not None and change.gone else change


def _forget_joined(kind: Any, windows: Any, stamp: int, now: int, value: Any) -> Any:
    """Leave sessions where they are that a record has joined to another."""
    change = _session(kind, windows, stamp, now, value)
    return change and Change(change.put)


def _in_one(kind: Any, windows: Any, stamp: int, now: int, value: Any) -> Any:
    """Count a record in the last of its windows alone."""
    change = _aligned(kind, windows, stamp, now, value)
    return change and Change({max(change.put): change.put[max(change.put)]})


def _forgetting(take_over: Any) -> Any:
    """Take out what is over, and remember nothing of it."""

    def changed(kind: Any, windows: Any, at: int) -> Any:
        over = take_over(kind, windows, at)
        windows.pop(REMEMBERED, None)
        return over

    return changed


def _begin_none_behind(kind: Any, windows: Any, stamp: int, now: int, value: Any) -> Any:
    """Begin no window right behind a record."""
    change = _slid(kind, windows, stamp, now, value)
    return change and Change({start: each for start, each in change.put.items() if start != stamp + 1})


def _without_grace(kind: Any, step: Any, windows: Any, values: Any) -> None:
    _built(kind, step, windows, values)
    kind._grace_ms = 0


def _time_stays(operator: Any, partition: Any, to: int) -> None:
    """Put out what is over by then, and leave the time where it was."""
    before = partition.time.now
    _advance(operator, partition, to)
    partition.time.now = before


def _go_past(operator: Any, number: int, to: int) -> Any:
    """Let more time pass than what waits needs: so what a timer sets fires too."""
    return _pass_time(operator, number, to + 1_000)


def _of_numbers_seen(operators: Any, sources: Any) -> Any:
    """Drain the numbers only of which a record has come since the start."""
    before, windows = operators._numbers, list(operators._operators.values())
    seen = [number for number in before if any(each._cache.of(number)[0] for each in windows)]
    operators._numbers = seen
    return _numbered(operators, sources)


def _every_operator(operators: Any, sources: Any) -> Any:
    return list(operators._operators.items())


def timed(kind: str, *, drained: bool, sinks: tuple[str, ...] = ("out",)) -> dict[str, Any]:
    """Return a job with this operator, or with two where a sink is the job's own."""
    return {
        "timed": kind,
        "drained": drained,
        "sinks": sinks,
        "sizes": (14, 11),
        "other_sizes": (),
        "input_grows_ms": 0,
        "commits_globally": False,
    }


def restarting(kind: str, *, drained: bool) -> dict[str, Any]:
    """Return the same, whose processes are killed now and then."""
    return timed(kind, drained=drained) | {"kill_every_ms": 500, "fault_phase_ms": 3_000}


_TWO = ("own", "out")
ASKED_OFTEN = {
    "asked_every_ms": 60,
    "fault_phase_ms": 2_000,
    "most_subtasks": 2,
    "broker_away_every_ms": 0,
    "stopped_every_ms": 0,
}

MUTANTS_OF_TIME = (
    Mutant(
        "what waits for its time comes out where bounded input ends",
        instead(Subtask, "_drain", _drain_at_every_end),
        timed("tumbling", drained=False),
        100,
    ),
    Mutant(
        "the end of a later stage is taken for a drain",
        instead(SubtaskState, "on", _at_every_end),
        timed("session", drained=False, sinks=_TWO),
        100,
    ),
    Mutant(
        "no time passes at a drain",
        instead(Subtask, "_drain", lambda subtask, stages: None),
        timed("timers", drained=True),
        100,
    ),
    Mutant(
        "the end of a drain is said before its time has passed",
        lambda: _said_first(),
        timed("hopping", drained=True),
        100,
    ),
    Mutant(
        "a drain closes the windows of a later stage with those of the first",
        instead(TimedOperators, "_behind", _every_operator),
        timed("timers", drained=True, sinks=_TWO),
        100,
    ),
    Mutant(
        "a drain that comes late closes the windows of a stage whose end is said",
        instead(TimedOperators, "pass_over", lambda operators, sources: None),
        timed("tumbling", drained=False, sinks=_TWO) | ASKED_OFTEN,
        1_000,
    ),
    Mutant(
        "a drain passes over numbers of which no record has come since the start",
        instead(TimedOperators, "drain", _of_numbers_seen),
        restarting("tumbling", drained=True),
        1_000,
    ),
    Mutant(
        "time goes back behind a drain",
        instead(WindowOperator, "_advance", _time_stays),
        restarting("hopping", drained=True),
        500,
    ),
    Mutant(
        "a drain fires what its own timers have set",
        instead(ProcessOperator, "pass_time", _go_past),
        timed("timers", drained=True),
        100,
    ),
    Mutant(
        "the state of a closed window is kept",
        instead(WindowOperator, "_put_out", _keep_closed),
        timed("tumbling", drained=False),
        100,
    ),
    Mutant(
        "a window that was closed is there after a restore",
        lambda: _closed_for_now(),
        restarting("tumbling", drained=False),
        500,
    ),
    Mutant(
        "when windows close is in no checkpoint",
        instead(TimeQueue, "write_back", lambda queue: None),
        restarting("session", drained=False),
        500,
    ),
    Mutant(
        "stream time is in no checkpoint",
        instead(StreamTime, "write_back", lambda time: None),
        restarting("tumbling", drained=False),
        500,
    ),
    Mutant(
        "a late record counts",
        instead(AlignedWindows, "change", _count_late),
        timed("tumbling", drained=False),
        100,
    ),
    Mutant(
        "a record counts in one of its windows",
        instead(AlignedWindows, "change", _in_one),
        timed("hopping", drained=False),
        100,
    ),
    Mutant(
        "windows close without their grace",
        instead(AlignedWindows, "__init__", _without_grace),
        timed("hopping", drained=False),
        100,
    ),
    Mutant(
        "a record that comes between two sessions makes a third",
        instead(SessionWindows, "change", _join_none),
        timed("session", drained=False),
        100,
    ),
    Mutant(
        "a session begins within a gap of one that is over",
        instead(SessionWindows, "take_over", _forgetting(SessionWindows.take_over)),
        timed("session", drained=False),
        100,
    ),
    Mutant(
        "a session stays beside the one that it has become part of",
        instead(SessionWindows, "change", _forget_joined),
        timed("session", drained=False),
        100,
    ),
    Mutant(
        "what is over is forgotten before the windows that begin with it",
        instead(SlidingWindows, "take_over", _forgetting(SlidingWindows.take_over)),
        timed("sliding", drained=False),
        100,
    ),
    Mutant(
        "no window begins behind a record that drops out of one",
        instead(SlidingWindows, "change", _begin_none_behind),
        timed("sliding", drained=False),
        100,
    ),
    Mutant(
        "records move time behind a topic of the job's own",
        instead(ProcessOperator, "_one", _moved_by_records),
        timed("sliding", drained=False, sinks=("out", "own")),
        100,
    ),
    Mutant(
        "a record that is late where it comes from does not say so behind that",
        instead(SourceTimes, "own_time", lambda times, row: None),
        timed("timers", drained=False, sinks=("out", "own")),
        100,
    ),
    Mutant(
        "the time of a mark is not in the snapshot",
        instead(MarkedTimes, "write_back", lambda marks: None),
        timed("hopping", drained=False, sinks=("out", "own")),
        100,
    ),
    Mutant(
        "the time of what goes to a topic of the job's own is not in the snapshot",
        instead(RepartitionTimes, "write_back", lambda times: None),
        timed("hopping", drained=False, sinks=("out", "own")),
        100,
    ),
    Mutant("timers fire the last one first", instead(TimeQueue, "pop", _pop_last), timed("timers", drained=False), 100),
    Mutant(
        "a timer that was deleted fires",
        instead(KeyTimers, "delete", lambda timers, at: None),
        timed("timers", drained=False),
        100,
    ),
)
