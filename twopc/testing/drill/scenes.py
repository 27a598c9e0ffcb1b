"""How each kind of process is hit, and who takes its place: one function a kind, the same for every point.

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

from twopc.errors import Fenced
from twopc.testing.drill.arm import Arm
from twopc.testing.drill.cells import FALL, RECOVERY, WORKER_HELPERS, Cell, Signal
from twopc.testing.drill.drill import Drill
from twopc.testing.drill.process import Started, await_true, wake
from twopc.testing.ports import free_port

_HARMLESS = (0, Fenced.exit_code)
"""How a driver that was woken late may end."""


def hit_worker(drill: Drill, cell: Cell) -> None:
    """The worker dies, and its driver starts the next attempt; or it is stopped, and its sibling's death does that."""
    with drill.driver(*_arms(cell)) as driver:
        if cell.signal is Signal.STOP:
            outlive(drill, drill.await_stopped(cell.arm))
        driver.finish()
    assert drill.has_happened(cell.arm), f"{cell.point.name} was not reached"


def hit_coordinator(drill: Drill, cell: Cell) -> None:
    """The coordinator ends, and another takes its address; or it is stopped, and another job run takes over."""
    port = free_port()
    arms = (*cell.helpers, cell.arm)
    workers = WORKER_HELPERS.get(cell.point, ())
    with ExitStack() as running:
        first = running.enter_context(drill.coordinator(port, *arms))
        driver = running.enter_context(drill.driver(*workers, coordinator=_at(port)))
        drill.await_arm(cell.arm)
        if cell.signal is Signal.STOP:
            drill.await_stopped(cell.arm)
            other = free_port()
            second = running.enter_context(drill.coordinator(other))
            successor = running.enter_context(drill.driver(coordinator=_at(other)))
            drill.await_completed_after(drill.attempt)
            wake(first.pid)
            one_finishes([driver, successor])
            _end(first)
        else:
            assert first.wait() == (-signal.SIGKILL if cell.signal is Signal.KILL else 0)
            second = running.enter_context(drill.coordinator(port))
            assert driver.finish()["attempts"] == 1
        _end(second)


def hit_driver(drill: Drill, cell: Cell) -> None:
    """The driver ends in recovery, and the same command is started again; or it is stopped, and woken beside it."""
    with drill.driver(*_arms(cell)) as driver:
        drill.await_arm(cell.arm)
        if cell.signal is Signal.STOP:
            drill.await_stopped(cell.arm)
            attempt = drill.attempt
            with drill.driver() as successor:
                drill.await_completed_after(attempt)
                wake(driver.pid)
                one_finishes([driver, successor])
            return
        ends_in_recovery(driver, cell.signal)
    with drill.driver() as again:
        again.finish()


def ends_in_recovery(driver: Started, number: Signal) -> None:
    """Wait for a driver that was killed or terminated; 1 says that it was stopped while the job was starting again."""
    expected = {-signal.SIGKILL} if number is Signal.KILL else {0, 1}
    assert driver.wait() in expected, driver.last_words()


def outlive(drill: Drill, zombie: int) -> None:
    """Let a stopped worker outlive its attempt: its sibling's death ends that; wake it beside its successor."""
    attempt = drill.attempt
    await_true(lambda: bool(drill.workers(attempt) - {zombie}), f"nobody but the zombie attached to attempt {attempt}")
    for sibling in drill.workers(attempt) - {zombie}:
        with suppress(ProcessLookupError):
            os.kill(sibling, signal.SIGKILL)
    drill.await_completed_after(attempt)
    wake(zombie)


def _arms(cell: Cell) -> tuple[Arm, ...]:
    first = (FALL,) if cell.point in RECOVERY else ()
    return (*first, *WORKER_HELPERS.get(cell.point, ()), *cell.helpers, cell.arm)


def one_finishes(drivers: Sequence[Started]) -> None:
    """Wait for all; one at least must have finished the job, any other must have found itself fenced."""
    codes = [driver.wait() for driver in drivers]
    words = "; ".join(driver.last_words(1) for driver in drivers)
    assert 0 in codes, f"no driver finished: {codes} {words}"
    assert all(code in _HARMLESS for code in codes), f"who does not finish must be fenced: {codes} {words}"


def _end(coordinator: Started) -> None:
    coordinator.send(signal.SIGTERM)
    code = coordinator.wait()
    await_true(lambda: code == 0, f"the coordinator ended with {code}: {coordinator.last_words()}", 0)


def _at(port: int) -> str:
    return f"127.0.0.1:{port}"
