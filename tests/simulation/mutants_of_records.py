"""Breaks of what becomes of records and timers that go wrong, and of what a processor keeps."""

from __future__ import annotations

from typing import Any

import twopc.operators.bound_state
from tests.simulation.bad_records import DEAD
from tests.simulation.mutants import Mutant, instead
from twopc.operators import Dataflow
from twopc.operators.bound_state import Call
from twopc.operators.key_timers import KeyTimers
from twopc.operators.time_queue import TimeQueue

_pop = TimeQueue.pop


def pop_for_now(queue: Any, until: int) -> Any:
    """Take the first entry, and leave it in what a checkpoint holds."""
    before = dict(queue._dirty)
    due = _pop(queue, until)
    if due is not None:
        queue._dirty = before
    return due


BAD = {"sinks": ("out", DEAD), "other_sizes": (), "sizes": (14, 11), "input_grows_ms": 0}
RESTARTS = BAD | {"kill_every_ms": 500, "fault_phase_ms": 3_000}

MUTANTS_OF_RECORDS = (
    Mutant("a call that fails keeps its states", instead(Call, "drop", Call.keep), BAD, 100),
    Mutant("a call that fails keeps its timers", instead(KeyTimers, "drop", KeyTimers.keep), BAD, 100),
    Mutant(
        "a record that fails goes before what waits in front of it",
        instead(Dataflow, "_refuse_behind", lambda flow, taken, error: flow._refuse(error)),
        RESTARTS | {"batch_cut": 0.5},
        1_000,
    ),
    Mutant("a timer that has fired is there after a restore", instead(TimeQueue, "pop", pop_for_now), RESTARTS, 500),
    Mutant("timers are in no checkpoint", instead(TimeQueue, "write_back", lambda queue: None), RESTARTS, 500),
    Mutant(
        "a value outlives its time",
        instead(twopc.operators.bound_state, "time_of", lambda stored: None),
        BAD,
        100,
    ),
)
