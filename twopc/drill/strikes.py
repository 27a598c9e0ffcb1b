"""Carries faults out, each while a subtask stands at the fault's step, and undoes those that last."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from twopc.checkpoints import read_job
from twopc.drill.faults import Fault, Kind
from twopc.drill.stage import Stage
from twopc.errors import CheckpointCorrupted
from twopc.kafka.resume import Act, settle
from twopc.kafka.wire import ControlClient
from twopc.protocol.facts import CheckpointMetadata
from twopc.sink import Outcome
from twopc.testing.drill.process import is_stopped
from twopc.testing.kafka_proxy import Api, Fate, KafkaProxy, Rule
from twopc.testing.local_broker import LocalBroker
from twopc.testing.proxy import Direction

_SLOW_SECONDS = 0.2
_REFUSAL_SECONDS = 60.0
_SETTLE_SECONDS = 10.0
_SLOW = (Api.PRODUCE, Api.END_TXN, Api.ADD_PARTITIONS_TO_TXN, Api.DESCRIBE_TRANSACTIONS)


@dataclass
class Striker:
    """Knows whom to strike. `done` are the faults that were carried out, `findings` what was wrong at once.

    `broker` and `proxy` are None where the brokers are not the drill's own.
    """

    stage: Stage
    job: str
    client: ControlClient
    broker: LocalBroker | None
    proxy: KafkaProxy | None
    tell: Callable[[str], None]
    done: list[Fault] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    _undo: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def strike(self, fault: Fault) -> None:
        """Carry the fault out, and let the subtask go on."""
        self.tell(str(fault))
        try:
            if self._carry_out(fault):
                self.done.append(fault)
        finally:
            once = fault.arm.once(self.stage.folder)
            once.with_name(f"{once.name}.release").touch()

    def undo(self, *, everything: bool = False) -> None:
        """End what has lasted long enough."""
        for entry in list(self._undo):
            until, action = entry
            if everything or time.monotonic() >= until:
                self._undo.remove(entry)
                action()

    def _for(self, fault: Fault, action: Callable[[], None]) -> None:
        self._undo.append((time.monotonic() + fault.seconds, action))

    def _carry_out(self, fault: Fault) -> bool:
        """Return whether there was anything to strike."""
        if fault.kind.needs_own_broker:
            self._strike_broker(fault)
            return True
        match fault.kind:
            case Kind.KILL_DRIVER:
                self.stage.kill(self.stage.driver)
            case Kind.KILL_COORDINATOR:
                self.stage.kill(self.stage.coordinator)
            case Kind.CUT_CONTROL:
                self.stage.control.cut(*Direction)
                self._for(fault, self.stage.control.heal)
            case Kind.FILL_DISK:
                process = self.stage.coordinator
                self.stage.fill_disk(process, full=True)
                self._for(fault, lambda: self.stage.fill_disk(process, full=False))
            case Kind.EXPIRE_TRANSACTION:
                return self._abort_pending()
            case Kind.CORRUPT_CHECKPOINT:
                self._corrupt_newest()
            case _:
                assert fault.kind is Kind.KILL_WORKER, "a worker ends itself at its step"
        return True

    def _strike_broker(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.KILL_BROKER:
                self._own_broker().kill()
                self._own_broker().start()
            case Kind.PAUSE_BROKER:
                self._pause_broker(fault)
            case _:
                self._slow_broker(fault)

    def _own_broker(self) -> LocalBroker:
        assert self.broker is not None, "a broker that is not the drill's own is left alone"
        return self.broker

    def _pause_broker(self, fault: Fault) -> None:
        pids = [node.pid for node in self._own_broker().nodes if node.pid is not None]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

        def wake() -> None:
            for pid in pids:
                if is_stopped(pid):
                    os.kill(pid, signal.SIGCONT)

        self._for(fault, wake)

    def _slow_broker(self, fault: Fault) -> None:
        assert self.proxy is not None, "a broker that is not the drill's own is left alone"
        self.proxy.add(
            *(Rule(api, Direction.TO_CLIENT, Fate.DELAY, times=1_000, delay_seconds=_SLOW_SECONDS) for api in _SLOW)
        )
        self._for(fault, self.proxy.clear)

    def _abort_pending(self) -> bool:
        """As the broker does to a transaction whose time is up; return whether there was one to abort."""
        for item in self._newest_metadata().committables:
            settled = settle(self.client, item, confirmed=False, budget_seconds=_SETTLE_SECONDS, act=Act.ABORT)
            if settled.outcome is Outcome.LOST:
                return True
        return False

    def _corrupt_newest(self) -> None:
        """Damage a file, let everything fall, see that it is refused by name, and bring the file back."""
        self.stage.kill(self.stage.driver)
        self.stage.kill(self.stage.coordinator)
        path = self._newest_folder() / "metadata.json"
        whole = path.read_bytes()
        path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        self.stage.keep_running()
        driver = self.stage.driver
        deadline = time.monotonic() + _REFUSAL_SECONDS
        while driver is not None and driver.exit_code is None and time.monotonic() < deadline:
            time.sleep(0.05)
        code = None if driver is None else driver.exit_code
        if driver is None or code != CheckpointCorrupted.exit_code or path.name not in driver.last_words():
            self.findings.append(
                f"not refused: {path.parent.name}/{path.name} was damaged, and the job ended with {code}"
            )
        path.write_bytes(whole)
        self.stage.kill(self.stage.driver)
        self.stage.kill(self.stage.coordinator)

    def _newest_folder(self) -> Path:
        return read_job(self.stage.checkpoint_dir, self.job).completed[-1].folder

    def _newest_metadata(self) -> CheckpointMetadata:
        metadata = read_job(self.stage.checkpoint_dir, self.job).completed[-1].metadata
        assert metadata is not None
        return metadata
