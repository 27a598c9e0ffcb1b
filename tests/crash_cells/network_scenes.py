"""Faults between processes: replies and requests that a proxy loses, and recovery that falls in recovery.

No line of ours is hit, so nothing in a process says that the point was reached: the scene does.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.crash_cells.cells import CHECKPOINT, FALL, NUMBERS, THREE_DEEP, Cell, Signal, held
from tests.crash_cells.rig import Rig
from tests.crash_cells.scenes import ends_in_recovery, one_finishes, outlive
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.kafka_proxy import CONCURRENT_TRANSACTIONS, Api, Fate, KafkaProxy, Message, Rule
from twopc.faults.points import REACHED_VARIABLE, CrashPoint, note_reached
from twopc.faults.process import await_true, is_stopped, wake
from twopc.faults.tcp_proxy import Direction, Proxy
from twopc.testing.ports import free_port

_MARKERS_LATE_SECONDS = 5.0
"""Long enough for a client to connect again and ask, on however busy a machine."""
_MARKERS_LATE = 30
"""More than one commit needs, asked for again included."""


def lose_end_txn(rig: Rig, cell: Cell, proxy: KafkaProxy) -> None:
    """A worker commits, and request or reply is lost on the way; the worker is hit at that moment."""
    struck = Strike(cell)
    with rig.driver() as driver:
        await_true(lambda: rig.completed >= CHECKPOINT, "too few checkpoints were completed")
        proxy.add(*_rules(cell.point, struck))
        try:
            await_true(lambda: struck.pid != 0, f"{cell.point.name} was not reached")
        finally:
            proxy.clear()
        if cell.signal is Signal.STOP:
            await_true(lambda: is_stopped(struck.pid), f"process {struck.pid} did not stop")
            outlive(rig, struck.pid)
        driver.finish()


class Strike:
    """Hits the process at the other end of a connection, once."""

    def __init__(self, cell: Cell) -> None:
        self.pid = 0
        self._cell = cell
        self._lock = threading.Lock()

    def __call__(self, message: Message) -> None:
        with self._lock:
            if self.pid:
                return
            pid = _owner(message.client_port)
            os.kill(pid, NUMBERS[self._cell.signal])
            _note(self._cell.point)
            self.pid = pid


def _rules(point: CrashPoint, strike: Strike) -> tuple[Rule, ...]:
    match point:
        case CrashPoint.END_TXN_REPLY_LOST:
            return (Rule(Api.END_TXN, Direction.TO_CLIENT, Fate.DROP, then=strike),)
        case CrashPoint.END_TXN_NOT_APPLIED:
            return (Rule(Api.END_TXN, Direction.TO_TARGET, Fate.DROP, then=strike),)
        case CrashPoint.END_TXN_CONCURRENT:
            # The commit is decided, its markers are late, and the client, which has heard nothing, asks again.
            return (
                Rule(Api.END_TXN, Direction.TO_CLIENT, Fate.PASS, times=9, error=CONCURRENT_TRANSACTIONS, then=strike),
                Rule(Api.END_TXN, Direction.TO_CLIENT, Fate.DROP),
                Rule(
                    Api.WRITE_TXN_MARKERS,
                    Direction.TO_TARGET,
                    Fate.DELAY,
                    times=_MARKERS_LATE,
                    delay_seconds=_MARKERS_LATE_SECONDS,
                ),
            )
        case _:
            raise ValueError(f"{point.name} is not on the wire to a broker")


def lose_ack_reply(rig: Rig, cell: Cell) -> None:
    """The acknowledgement arrives and the checkpoint completes; the worker hears nothing of it, and is hit."""
    hold = held(CrashPoint.AFTER_ACK, name="-unheard")
    port = free_port()
    with ExitStack() as running:
        coordinator = running.enter_context(rig.coordinator(port))
        proxy = running.enter_context(Proxy(port))
        driver = running.enter_context(rig.driver(hold, coordinator=f"127.0.0.1:{proxy.port}"))
        worker = rig.await_arm(hold)
        proxy.cut(Direction.TO_CLIENT)
        os.kill(worker, NUMBERS[cell.signal])
        rig.release(hold)
        proxy.heal()
        if cell.signal is Signal.STOP:
            outlive(rig, worker)
        driver.finish()
        coordinator.send(signal.SIGTERM)
        assert coordinator.wait() == 0


def fall_again(rig: Rig, cell: Cell) -> None:
    """Recovery crashes in recovery, three deep; stopped ones are woken together beside the fourth."""
    arms = tuple(ArmedFault(point, cell.signal.value) for point in THREE_DEEP)
    with ExitStack() as running:
        fallen = []
        for arm in arms:
            driver = running.enter_context(rig.driver(FALL, *arms))
            rig.await_arm(arm)
            if cell.signal is Signal.STOP:
                rig.await_stopped(arm)
                fallen.append(driver)
            else:
                ends_in_recovery(driver, cell.signal)
        _note(CrashPoint.RECOVERY_AGAIN)
        attempt = rig.attempt
        last = running.enter_context(rig.driver())
        if fallen:
            rig.await_completed_after(attempt)
        for driver in fallen:
            wake(driver.pid)
        one_finishes([*fallen, last])


def _owner(port: int) -> int:
    """The process whose end of a connection has this port."""
    for connection in psutil.net_connections("tcp"):
        if connection.laddr and connection.laddr.port == port and connection.pid and connection.pid != os.getpid():
            return int(connection.pid)
    raise AssertionError(f"nobody is connected from port {port}")


def _note(point: CrashPoint) -> None:
    folder = os.environ.get(REACHED_VARIABLE)
    if folder:
        note_reached(Path(folder), point)
