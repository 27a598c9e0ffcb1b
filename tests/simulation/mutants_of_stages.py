"""Breaks of the order in which the stages of a job end that reads what it has itself written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator.membership import Membership
from coordinator.stages import StageEnds
from tests.simulation.mutants import Mutant, instead
from twopc.protocol.ids import NO_CHECKPOINT
from twopc.runtime.inputs import Inputs

OWN_TOPIC: dict[str, Any] = {
    "sinks": ("own", "out"),
    "other_sizes": (),
    "sizes": (7, 5),
    "input_grows_ms": 0,
    "commits_globally": False,
}

_end = Membership.end


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


MUTANTS_OF_STAGES = (
    Mutant(
        "the next stage is bounded before the one before is committed",
        instead(StageEnds, "next_to_end", _at_once),
        OWN_TOPIC,
        500,
    ),
    Mutant("the end of the first stage is the end of the job", instead(Membership, "end", _end_of_all), OWN_TOPIC, 100),
    Mutant("a drain bounds all stages at once", instead(Inputs, "bound", _all_stages), OWN_TOPIC, 1_000),
)
