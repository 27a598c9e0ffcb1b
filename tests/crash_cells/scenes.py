"""The scene of each kind of process: how it is hit, and who takes its place; the same for every point.

- A worker: the driver starts another attempt by itself. Stopped, it outlives its attempt as a zombie, and is woken when
  a later attempt has completed a checkpoint.
- A coordinator: another is started at its address, and the attempt goes on. Stopped, another coordinator and another
  driver take the job over meanwhile, and it is woken beside them.
- A driver: the same command is started again. Stopped, beside the one that is woken.

Whoever is woken may end as fenced, or take the job back; what it must not do is harm, and that `judge` finds.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from tests.crash_cells.cells import FALL, RECOVERY, WORKER_HELPERS, Cell, Signal
from tests.crash_cells.rig import Rig
from twopc.errors import Fenced
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.process import ManagedProcess, await_true, wake
from twopc.testing.ports import free_port

_HARMLESS = (0, Fenced.exit_code)
"""How a driver that was woken late may end."""


def hit_worker(rig: Rig, cell: Cell) -> None:
    """The worker dies, and its driver starts the next attempt; or it is stopped, and its sibling's death does that."""
    with rig.driver(*_arms(cell)) as driver:
        if cell.signal is Signal.STOP:
            outlive(rig, rig.await_stopped(cell.arm))
        driver.finish()
    assert rig.has_happened(cell.arm), f"{cell.point.name} was not reached"


def hit_coordinator(rig: Rig, cell: Cell) -> None:
    """The coordinator ends, and another takes its address; or it is stopped, and another job run takes over."""
    port = free_port()
    arms = (*cell.helpers, cell.arm)
    workers = WORKER_HELPERS.get(cell.point, ())
    with ExitStack() as running:
        first = running.enter_context(rig.coordinator(port, *arms))
        driver = running.enter_context(rig.driver(*workers, coordinator=_at(port)))
        rig.await_arm(cell.arm)
        if cell.signal is Signal.STOP:
            rig.await_stopped(cell.arm)
            other = free_port()
            second = running.enter_context(rig.coordinator(other))
            successor = running.enter_context(rig.driver(coordinator=_at(other)))
            rig.await_completed_after(rig.attempt)
            wake(first.pid)
            one_finishes([driver, successor])
            _end(first)
        else:
            assert first.wait() == (-signal.SIGKILL if cell.signal is Signal.KILL else 0)
            second = running.enter_context(rig.coordinator(port))
            assert driver.finish()["attempts"] == 1
        _end(second)


def hit_driver(rig: Rig, cell: Cell) -> None:
    """The driver ends in recovery, and the same command is started again; or it is stopped, and woken beside it."""
    with rig.driver(*_arms(cell)) as driver:
        rig.await_arm(cell.arm)
        if cell.signal is Signal.STOP:
            rig.await_stopped(cell.arm)
            attempt = rig.attempt
            with rig.driver() as successor:
                rig.await_completed_after(attempt)
                wake(driver.pid)
                one_finishes([driver, successor])
            return
        ends_in_recovery(driver, cell.signal)
    with rig.driver() as again:
        again.finish()


def ends_in_recovery(driver: ManagedProcess, number: Signal) -> None:
    """Wait for a driver that was killed or terminated; 1 says that it was stopped while the job was starting again."""
    expected = {-signal.SIGKILL} if number is Signal.KILL else {0, 1}
    assert driver.wait() in expected, driver.last_words()


def outlive(rig: Rig, zombie: int) -> None:
    """Let a stopped worker outlive its attempt: its sibling's death ends that; wake it beside its successor."""
    attempt = rig.attempt
    await_true(lambda: bool(rig.workers(attempt) - {zombie}), f"nobody but the zombie attached to attempt {attempt}")
    for sibling in rig.workers(attempt) - {zombie}:
        with suppress(ProcessLookupError):
            os.kill(sibling, signal.SIGKILL)
    rig.await_completed_after(attempt)
    wake(zombie)


def _arms(cell: Cell) -> tuple[ArmedFault, ...]:
    first = (FALL,) if cell.point in RECOVERY else ()
    return (*first, *WORKER_HELPERS.get(cell.point, ()), *cell.helpers, cell.arm)


def one_finishes(drivers: Sequence[ManagedProcess]) -> None:
    """Wait for all; one at least must have finished the job, any other must have found itself fenced."""
    codes = [driver.wait() for driver in drivers]
    words = "; ".join(driver.last_words(1) for driver in drivers)
    assert 0 in codes, f"no driver finished: {codes} {words}"
    assert all(code in _HARMLESS for code in codes), f"who does not finish must be fenced: {codes} {words}"


def _end(coordinator: ManagedProcess) -> None:
    coordinator.send(signal.SIGTERM)
    code = coordinator.wait()
    await_true(lambda: code == 0, f"the coordinator ended with {code}: {coordinator.last_words()}", 0)


def _at(port: int) -> str:
    return f"127.0.0.1:{port}"
