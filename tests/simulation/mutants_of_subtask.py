"""Breaks of which splits and state a subtask has, and of what it does with a batch that is cut."""

from __future__ import annotations

from typing import Any

import twopc.driver.preparation
from tests.simulation.mutants import Mutant, instead
from twopc.operators import Dataflow
from twopc.operators.write_back_cache import WriteBackCache
from twopc.runtime.subtask import Subtask


def _scattered(splits: Any, parallelism: int, keyed: Any) -> Any:
    """Deal the splits of each source out from another subtask on."""
    sources = list(dict.fromkeys(split.source for split in splits))
    at = [(split.partition + sources.index(split.source)) % parallelism for split in splits]
    return [tuple(split for split, its in zip(splits, at, strict=True) if its == index) for index in range(parallelism)]


def _of_its_own_index(subtask: Any, numbers: Any, snapshots: Any) -> Any:
    return tuple(snapshot for snapshot in snapshots if snapshot.subtask == subtask)


MUTANTS_OF_SUBTASK = (
    Mutant(
        "the splits of one number go to different subtasks",
        instead(twopc.driver.preparation, "assign", _scattered),
        {"sizes": (6,), "other_sizes": (6,), "most_subtasks": 3},
    ),
    Mutant(
        "a subtask is restored from its own index alone",
        instead(twopc.driver.preparation, "concerning", _of_its_own_index),
        {"sizes": (6, 6, 6), "most_subtasks": 3},
    ),
    Mutant(
        "positions are those of the whole batch where one was cut",
        instead(Dataflow, "waiting_rows", lambda flow, source: iter(())),
        {"batch_cut": 0.5, "kill_every_ms": 500, "sizes": (8, 8)},
        1_000,
    ),
    Mutant(
        "a subtask is at its end while records wait in its chain",
        instead(Subtask, "_at_end", lambda subtask: subtask._deps.inputs.at_end()),
        {"batch_cut": 0.5},
        500,
    ),
    Mutant(
        "a store that has states is not asked for them",
        instead(WriteBackCache, "store_is_empty", lambda cache, partition: True),
        {"kill_every_ms": 500},
        500,
    ),
)
