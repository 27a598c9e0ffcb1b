"""The judge of a job that joins: what was found for each record must be in an order that is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.simulation.async_client import is_refused
from tests.simulation.bad_records import DEAD
from tests.simulation.job import FIRST_SINK, KAFKA_TOPICS, KEYS, is_beside
from tests.simulation.joins import NOTHING, JoinJob, rate_of
from tests.simulation.joins_model import determined, ends_that_make, events_of
from tests.simulation.rates import CHANGES, rates_after, there_at
from tests.simulation.run import Simulation
from twopc.state.forms import Version, Waiting
from twopc.state.layout import StateName

NOT_ONCE = "output is not exactly once"


def judge_joined(run: Simulation, joined: JoinJob, *, whole: bool) -> None:
    """Enter what is wrong with the output; unless `whole`, the job was given up on its way."""
    for sink in run.world.faults.sinks:
        for lane, size in enumerate(run.broker.lanes.values()):
            visible = run.broker.read_committed(KAFKA_TOPICS[sink], lane)
            for wrong in _wrong(run, joined, sink, lane, size, visible, whole=whole):
                run.world.violated(NOT_ONCE, f"{sink}, lane {lane}: {wrong}")


def _wrong(
    run: Simulation, joined: JoinJob, sink: str, lane: int, size: int, visible: list[str], *, whole: bool
) -> Iterator[str]:
    sizes = run.world.faults.sizes
    if lane >= len(sizes):
        if visible:
            yield f"strange {visible}"
    elif sink == DEAD:
        expected = [f"{lane}:{at}" for at in range(size) if is_refused(at)]
        if visible != (expected if whole else expected[: len(visible)]):
            yield f"{visible}, not {expected}"
    elif sink != FIRST_SINK:
        first = list(filter(is_beside, run.broker.read_committed(KAFKA_TOPICS[FIRST_SINK], lane)))
        if visible != first:
            yield f"{visible}, the first sink has {first}"
    else:
        other = run.world.faults.other_sizes[lane]
        rows = [value.split(":") for value in visible]
        yield from _wrong_rates(run, lane, [(row[1], row[2]) for row in rows if row[1] != NOTHING])
        yield from _wrong_joins([f"{row[1]}:{row[3]}" for row in rows], size, other, joined, whole=whole)


def _wrong_rates(run: Simulation, lane: int, found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A record has one rate, of what was there when it was first read or of what came since, and none goes back."""
    rates: dict[int, str] = {}
    for text, rate in found:
        if rates.setdefault(int(text), rate) != rate:
            yield f"record {text} has two rates"
    changes = 0
    for offset in sorted(rates):
        changes = max(changes, there_at(run.broker.first_read_at[lane, offset]))
        key = rate_of(f"{lane}:{offset}").decode()
        # The fewest changes that fit leave most for those behind it.
        fits = (
            each for each in range(changes, len(CHANGES) + 1) if rates_after(each).get(key, NOTHING) == rates[offset]
        )
        if (least := next(fits, None)) is None:
            yield f"record {offset} has the rate {rates[offset]}, after {changes} changes"
            return
        changes = least


def _wrong_joins(output: list[str], size: int, other: int, joined: JoinJob, *, whole: bool) -> Iterator[str]:
    events = events_of(size, other, KEYS)
    if not joined.is_determined:
        if next(ends_that_make(output, *events, joined, whole=whole), None) is None:
            yield f"no order of the two inputs makes {output}"
        return
    _, expected = determined(*events, joined)
    if output != (expected if whole else expected[: len(output)]):
        yield f"{output}, not {expected}"


def held_of(run: Simulation, state: StateName, stored: bytes) -> list[Any]:
    """Return what a state of a join has of a key, one by one: how far on each record is, and what is held with it.

    That is, of one that waits, its time, until when, and if it has met one; of a version, its time.
    """
    held = run.definition.state_serdes[state].deserialize(stored)
    return [_plain(each) for each in ([held] if isinstance(held, str) else held)]


def _plain(each: str | Waiting | Version) -> Any:
    match each:
        case Waiting(at, until, met, value):
            return _offset(value), at, until, met
        case Version(at, value):
            return (None if value is None else _offset(value)), at
        case _:
            return _offset(each)


def _offset(value: str) -> int:
    """Return how far on a record is: it says so behind its lane, or has nothing else."""
    return int(value.split(":")[1] if ":" in value else value)
