"""Breaks of the order in which the stages of a job end that reads what it has itself written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tests.simulation.own_topic
from coordinator.membership import Membership
from coordinator.stages import StageEnds
from tests.simulation.job import OWN_SOURCE
from tests.simulation.mutants import Mutant, instead
from twopc.kafka.positions.course import Course
from twopc.kafka.positions.partition_position import PartitionSplit, partition_positions
from twopc.kafka.transactions.transactional import TransactionalWriter
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.runtime.inputs import Inputs

OWN_TOPIC: dict[str, Any] = {
    "sinks": ("own", "out"),
    "other_sizes": (),
    "sizes": (7, 5),
    "input_grows_ms": 0,
    "commits_globally": False,
}

GOING_BACK: dict[str, Any] = {
    "back_every_ms": 1_000,
    "fault_phase_ms": 6_000,
    "interval_ms": 50,
    "retained": 8,
    "sizes": (24, 16),
    "max_concurrent": 2,
    "kill_every_ms": 1_500,
    "kill_all_every_ms": 0,
    "pause_every_ms": 1_500,
    "second_coordinator_every_ms": 0,
    "second_driver_every_ms": 0,
    "stopped_every_ms": 0,
    "crash_in_recovery": 0.0,
    "timed": "",
    "joins": (),
}
"""Fewer faults than the seeds draw, so that there are checkpoints to go back to."""


_end, _at, _asked = Membership.end, PartitionSplit.at, TransactionalWriter._asked_own_ends
_positions = Inputs.positions


def _at_once(stages: StageEnds, committed: Any) -> Any:
    """Let a stage end as soon as the one before was read, whatever is committed."""
    if (stage := stages._next) is None:
        return None
    stages.bounded, stages._through = stage, NO_CHECKPOINT
    return stage


def _end_of_all(membership: Membership, subtask: Any, end: Any) -> Any:
    return _end(membership, subtask, replace(end, following=0))


def _all_stages(inputs: Any, stage: int = 0) -> None:
    for reader in inputs._readers.values():
        reader.bound()


def _newest(kept: Any) -> Any:
    return {held.partition: held for held in partition_positions(kept)}


def _without_own(inputs: Any, waiting: Any) -> Any:
    return tuple(held for held in _positions(inputs, waiting) if held.source != OWN_SOURCE)


def _nothing_passed(course: Any, held: Any, mixed: Any, end: Any) -> Any:
    return held


def _all_passed(course: Any, held: Any, mixed: Any, end: Any) -> Any:
    return replace(held, passed=((held.position, end),)) if held.position < end else held


def _without_passed(split: Any, position: Any, read: Any = None) -> Any:
    return replace(_at(split, position, read), passed=())


def _ends_of_the_checkpoint_before(writer: Any) -> Any:
    before, writer.asked_before = getattr(writer, "asked_before", None), _asked(writer)
    return before or writer.asked_before


def _by_the_least_end(course: Any, number: Any, producer_id: Any, offset: Any) -> Any:
    return offset < course.first_end(number)


GOES_BACK = OWN_TOPIC | GOING_BACK

MUTANTS_OF_STAGES = (
    Mutant("an abandoned course is read", instead(Course, "passing", _nothing_passed), GOES_BACK, 500),
    Mutant("what is left to read is passed over", instead(Course, "passing", _all_passed), GOES_BACK, 500),
    Mutant("positions forget what they pass over", instead(PartitionSplit, "at", _without_passed), GOES_BACK, 500),
    Mutant("one end is taken for all subtasks", instead(Course, "has", _by_the_least_end), GOES_BACK, 2_000),
    Mutant(
        "a topic of the job's own is deleted up to where the newest checkpoint stands",
        instead(tests.simulation.own_topic, "oldest", _newest),
        GOES_BACK,
        500,
    ),
    Mutant("positions in it are in no checkpoint", instead(Inputs, "positions", _without_own), OWN_TOPIC, 500),
    Mutant(
        "a checkpoint has the ends of the one before",
        instead(TransactionalWriter, "_asked_own_ends", _ends_of_the_checkpoint_before),
        GOES_BACK,
        500,
    ),
    Mutant(
        "the next stage is bounded before the one before is committed",
        instead(StageEnds, "next_to_end", _at_once),
        OWN_TOPIC,
        500,
    ),
    Mutant("the end of the first stage is the end of the job", instead(Membership, "end", _end_of_all), OWN_TOPIC, 100),
    Mutant("a drain bounds all stages at once", instead(Inputs, "bound", _all_stages), OWN_TOPIC, 1_000),
)
