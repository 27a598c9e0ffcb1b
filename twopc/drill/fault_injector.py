"""Injects faults, each while a subtask stands at the fault's step, and undoes those that last."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from twopc.drill.faults import Fault, Kind
from twopc.drill.own_broker import OwnBroker
from twopc.drill.storage_faults import NO_ROOM, damage_newest, fill_under
from twopc.drill.supervisor import Supervisor
from twopc.drill.transaction_faults import abort_one, expire_one
from twopc.faults.reversals import Reversals
from twopc.faults.tcp_proxy import Direction
from twopc.kafka.clients.control_client import ControlClient

ARMED_AGAIN_SECONDS = 3.0
"""The process that waited at the step has gone on by then, however busy the machine is."""


@dataclass
class FaultInjector:
    """Injects faults. `done` are those that were carried out, `findings` what was wrong at once.

    `struck` is when each of them began, in Unix seconds.

    `missed` says why a fault found nothing to strike, by its number. `broker` is None where it is not the drill's own.
    """

    supervisor: Supervisor
    job: str
    client: ControlClient
    broker: OwnBroker | None
    tell: Callable[[str], None]
    done: list[Fault] = field(default_factory=list)
    struck: list[tuple[str, float]] = field(default_factory=list)
    missed: dict[int, str] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    _lasting: Reversals = field(default_factory=Reversals)

    def inject(self, fault: Fault) -> bool:
        """Carry the fault out, and let the subtask go on; return whether it struck.

        Where there was nothing to strike, the next subtask that comes to the step is held again.
        """
        self.tell(str(fault))
        struck = time.time()
        try:
            missed = self._carry_out(fault)
        finally:
            self._release(fault)
        if missed is None:
            self.done.append(fault)
            self.struck.append((str(fault), struck))
            return True
        self.missed[fault.number] = missed
        self.tell(f"nothing was struck, {missed}: to be tried again")
        self._lasting.after(ARMED_AGAIN_SECONDS, lambda: fault.arm.disarm(self.supervisor.folder))
        return False

    def undo(self, *, everything: bool = False) -> None:
        """End what has lasted long enough."""
        self._lasting.run(everything=everything)

    def _release(self, fault: Fault) -> None:
        fault.arm.release(self.supervisor.folder).touch()

    def _carry_out(self, fault: Fault) -> str | None:
        """Return why there was nothing to strike; None if there was."""
        match fault.kind:
            case Kind.KILL_DRIVER:
                self.supervisor.kill(self.supervisor.driver)
            case Kind.KILL_COORDINATOR:
                self.supervisor.kill(self.supervisor.coordinator)
            case Kind.CUT_CONTROL:
                self.supervisor.control.cut(*Direction)
                self._lasting.after(fault.seconds, self.supervisor.control.heal)
            case Kind.FILL_DISK:
                pid = self.supervisor.coordinator.pid
                self.supervisor.limit_files(pid, NO_ROOM)
                self._lasting.after(fault.seconds, lambda: self.supervisor.limit_files(pid, None))
            case Kind.FILL_SNAPSHOT_DISK | Kind.CORRUPT_CHECKPOINT:
                return self._strike_stored(fault)
            case Kind.ABORT_TRANSACTION:
                return abort_one(self.client, self.supervisor.checkpoint_dir, self.job)
            case Kind.KILL_WORKER:
                pass  # It has ended itself, at its step.
            case _:
                return self._strike_broker(fault)
        return None

    def _strike_stored(self, fault: Fault) -> str | None:
        # What lasts of another fault would hide what is to be seen now.
        self.undo(everything=True)
        if fault.kind is Kind.CORRUPT_CHECKPOINT:
            self.findings += damage_newest(self.supervisor, self.job)
            return None
        held = int(fault.arm.once(self.supervisor.folder).read_text())
        return fill_under(self.supervisor, held, lambda: self._release(fault))

    def _strike_broker(self, fault: Fault) -> str | None:
        broker = self.broker
        assert broker is not None, "a broker that is not the drill's own is left alone"
        match fault.kind:
            case Kind.KILL_BROKER:
                broker.crash()
            case Kind.PAUSE_BROKER:
                self._lasting.after(fault.seconds, broker.pause())
            case Kind.SLOW_BROKER:
                self._lasting.after(fault.seconds, broker.slow_down())
            case _:
                assert fault.kind is Kind.EXPIRE_TRANSACTION, fault.kind
                self.undo(everything=True)
                self.supervisor.kill(self.supervisor.driver)
                return expire_one(self.client, self.supervisor.checkpoint_dir, self.job)
        return None
