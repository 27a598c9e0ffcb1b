"""The patches of production modules while a simulation runs: clocks, dice, crashes, the slots' keeper.

Everything else is injected through constructors, as production does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import coordinator.jobs
import coordinator.ledger
import coordinator.shell
import coordinator.silence
import tests.simulation.disk
import tests.simulation.driver
import tests.simulation.kafka_clients
import tests.simulation.snapshots
import tests.simulation.subtask
import twopc.driver.supervision
import twopc.driver.trimming
import twopc.kafka.clients.retry
import twopc.kafka.transactions.lingering_transactions
import twopc.kafka.transactions.live_commit
import twopc.kafka.transactions.resume
import twopc.kafka.transactions.transactional
import twopc.operators.async_map
import twopc.protocol.ledger_state
import twopc.runtime.assembly
import twopc.runtime.commit_queue
import twopc.runtime.snapshot_pipeline
import twopc.runtime.state
import twopc.runtime.subtask
import twopc.state.restore
import twopc.storage.files
from coordinator.core import Core
from tests.simulation.async_client import SimLoop
from tests.simulation.coordinator_judge import watched_step
from tests.simulation.filesystem import SimDisk
from tests.simulation.modules import SimSecrets, SimShutil, remove_tree
from tests.simulation.plain_values import made_plainly
from tests.simulation.sink import SimSlotPool
from tests.simulation.world import World
from twopc.faults.points import CrashPoint
from twopc.protocol.ledger_facts import Entry
from twopc.protocol.ledger_place import LedgerPlace
from twopc.protocol.ledger_state import LedgerState, decode_entry, encode_entry

CRASHING: tuple[Any, ...] = (
    coordinator.ledger,
    coordinator.shell,
    twopc.storage.files,
    twopc.kafka.transactions.live_commit,
    twopc.kafka.transactions.lingering_transactions,
    twopc.kafka.transactions.resume,
    twopc.kafka.transactions.transactional,
    twopc.runtime.assembly,
    twopc.runtime.snapshot_pipeline,
    twopc.runtime.commit_queue,
    twopc.runtime.subtask,
    tests.simulation.disk,
    tests.simulation.driver,
    tests.simulation.kafka_clients,
    tests.simulation.snapshots,
    tests.simulation.subtask,
)


SWEEP_SECONDS = 2.0
"""How often a running driver sweeps: a run lasts for seconds."""

START_MS = 6_000
"""How long subtasks have to attach once one of them has: more than a heartbeat time-out, less than the calm phase."""

DECODED_EVERY = 8
"""In one run of so many, every entry of the ledger is decoded; in the others its bytes tell which one it is."""


class _Present:
    """Stands in modules for the world of the run that is being played: they are patched once, not once a run."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.is_in_force = False
        self._entries: dict[bytes, tuple[LedgerPlace, Entry | LedgerState]] = {}
        self._remembers = False

    def enter(self, world: World | None) -> None:
        self.world = world
        self._entries = {}
        self._remembers = world is not None and world.seed % DECODED_EVERY > 0

    def reached(self, point: CrashPoint, *, checkpoint: int = 0, subtask: int = -1) -> None:
        world = self.world
        if world is not None and world.lane is not None:
            world.reached(world.lane.process, point, checkpoint)

    def monotonic(self) -> float:
        return self._now.monotonic()

    def sleep(self, seconds: float) -> None:
        self._now.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        return self._now.rng.uniform(low, high)

    def encode_entry(self, entry: Entry | LedgerState, place: LedgerPlace) -> bytes:
        data = encode_entry(entry, place)
        if self._remembers:
            self._entries[data] = (place, entry)
        return data

    def decode_entry(self, data: bytes, source: str) -> tuple[LedgerPlace, Entry | LedgerState]:
        """As production does, once for each entry of a run; in most runs only what are not the bytes of an entry."""
        found = self._entries.get(data)
        if found is None:
            found = self._entries[data] = decode_entry(data, source)
        return found

    def event_loop(self) -> SimLoop:
        return SimLoop(self._now)

    def slot_pool(self, *arguments: Any) -> SimSlotPool:
        return SimSlotPool(self._now, *arguments)

    @property
    def _now(self) -> World:
        assert self.world is not None, "production code runs in a world only"
        return self.world


_present = _Present()


@contextmanager
def replaced() -> Iterator[None]:
    """Put `present` under the production modules, and no logging; may be entered again inside."""
    if _present.is_in_force:
        yield
        return
    disabled = logging.root.manager.disable
    with ExitStack() as stack:
        stack.enter_context(patch.object(_present, "is_in_force", True))
        stack.callback(logging.disable, disabled)
        logging.disable(logging.CRITICAL)
        stack.enter_context(made_plainly())
        for module in CRASHING:
            stack.enter_context(patch.object(module, "reached", _present.reached))
        for module in (twopc.runtime.state, twopc.state.restore):
            stack.enter_context(patch.object(module, "shutil", SimShutil))
        disk = SimDisk()
        for name, stands_in in (("disk", disk), ("os", disk), ("secrets", SimSecrets()), ("remove_tree", remove_tree)):
            stack.enter_context(patch.object(twopc.storage.files, name, stands_in))
        stack.enter_context(patch.object(twopc.driver.supervision, "SWEEP_PAUSE_SECONDS", SWEEP_SECONDS))
        stack.enter_context(patch.object(twopc.driver.trimming, "TRIM_PAUSE_SECONDS", SWEEP_SECONDS))
        stack.enter_context(patch.object(coordinator.silence, "START_MS", START_MS))
        stack.enter_context(patch.object(coordinator.ledger, "encode_entry", _present.encode_entry))
        stack.enter_context(patch.object(Core, "step", watched_step(lambda: _present._now)))
        for module in (twopc.protocol.ledger_state, coordinator.ledger, tests.simulation.disk):
            stack.enter_context(patch.object(module, "decode_entry", _present.decode_entry))
        stack.enter_context(patch.object(twopc.kafka.clients.retry, "time", _present))
        stack.enter_context(patch.object(twopc.kafka.clients.retry, "random", _present))
        stack.enter_context(patch.object(twopc.kafka.transactions.transactional, "SlotPool", _present.slot_pool))
        stack.enter_context(patch.object(twopc.operators.async_map, "_LoopThread", _present.event_loop))
        stack.enter_context(patch.object(twopc.operators.async_map, "random", _present))
        yield


@contextmanager
def playing(world: World) -> Iterator[None]:
    """Let this be the world that the production modules are in."""
    with replaced():
        _present.enter(world)
        try:
            yield
        finally:
            _present.enter(None)
