"""What is replaced in production modules while a simulation runs: clocks, dice, crashes, RocksDB, the slots' keeper.

Everything else is injected through constructors, as production does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import coordinator.jobs
import twopc.driver.recovery
import twopc.kafka.committer
import twopc.kafka.patience
import twopc.kafka.transactional
import twopc.runtime.subtask
import twopc.state.restore
from twopc.state.memory import MemoryBackend
from twopc.testing.simulation.sink import SimSlotPool
from twopc.testing.simulation.world import World

CRASHING: tuple[Any, ...] = (
    coordinator.jobs,
    twopc.driver.recovery,
    twopc.kafka.committer,
    twopc.kafka.transactional,
    twopc.runtime.subtask,
)


class _Time:
    """As the module `time`, for who waits."""

    def __init__(self, world: World) -> None:
        self.monotonic = world.monotonic
        self.sleep = world.sleep


@contextmanager
def replaced(world: World) -> Iterator[None]:
    """Put the world under the production modules."""
    disabled = logging.root.manager.disable
    with ExitStack() as stack:
        stack.callback(logging.disable, disabled)
        logging.disable(logging.CRITICAL)
        for module in CRASHING:
            stack.enter_context(patch.object(module, "reached", world.reached))
        stack.enter_context(patch.object(twopc.kafka.patience, "time", _Time(world)))
        stack.enter_context(patch.object(twopc.kafka.patience, "random", world.rng))
        stack.enter_context(patch.object(twopc.state.restore, "RocksDBBackend", MemoryBackend))
        stack.enter_context(patch.object(twopc.kafka.transactional, "SlotPool", partial(SimSlotPool, world)))
        yield
