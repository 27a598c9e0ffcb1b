"""Breaks of what a subtask does with a batch that is cut."""

from __future__ import annotations

from tests.simulation.mutants import Mutant, instead
from twopc.operators import Dataflow
from twopc.runtime.subtask import Subtask

MUTANTS_OF_SUBTASK = (
    Mutant(
        "positions are those of the whole batch where one was cut",
        instead(Dataflow, "waiting_rows", lambda flow, source: iter(())),
        {"batch_cut": 0.5, "kill_every_ms": 500, "sizes": (8, 8)},
        1_000,
    ),
    Mutant(
        "a subtask is at its end while records wait in its chain",
        instead(Subtask, "_at_end", lambda subtask: subtask._parts.inputs.at_end()),
        {"batch_cut": 0.5},
        500,
    ),
)
