"""One run of torture: starts drivers until one has finished the job, while the plan's faults happen; then judges.

Nothing here depends on when something happens, only on what is found: a driver that ended in a way that a crash or a
stop explains is started again, a process that is stopped is woken when its time has come, and a stopped driver gets a
successor meanwhile.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack

from tests.crash_cells.judge import judge
from tests.crash_cells.rig import Rig
from tests.timed_faults import Action, TimedFault, bring_back, send_away
from tests.torture.plan import Plan
from twopc.errors import CheckpointCorrupted, Fenced, Unavailable
from twopc.faults.process import ManagedProcess, is_stopped, wake
from twopc.faults.reversals import Reversals
from twopc.testing.broker_node import BrokerNode
from twopc.testing.local_broker import LocalBroker

LIMIT_SECONDS = 300.0
_TURN_SECONDS = 0.05
_EXPLAINED = (-signal.SIGKILL, Fenced.exit_code, Unavailable.exit_code, CheckpointCorrupted.exit_code)


class Run:
    """Plays one plan on one drill. `faults` counts what really happened."""

    def __init__(self, plan: Plan, rig: Rig, broker: LocalBroker) -> None:
        self.faults = 0
        self._plan = plan
        self._rig = rig
        self._broker = broker
        self._began = time.monotonic()
        self._drivers: list[ManagedProcess] = []
        self._asleep: set[int] = set()
        self._away: list[BrokerNode] = []
        self._lasting = Reversals()
        self._to_come = sorted(plan.broker_faults, key=lambda fault: fault.at)

    def play(self) -> list[str]:
        """Return everything that is wrong in the end; none if all is as it must be."""
        with ExitStack() as running:
            try:
                while not self._is_finished():
                    if self._seconds() > LIMIT_SECONDS:
                        return [f"the job has not finished within {LIMIT_SECONDS:.0f} s", *self._rig.logs()]
                    if not any(self._is_at_work(driver) for driver in self._drivers):
                        self._drivers.append(running.enter_context(self._rig.driver(*self._plan.arms)))
                    self._hurt_brokers()
                    self._note_sleepers()
                    self._lasting.run()
                    time.sleep(_TURN_SECONDS)
            finally:
                self._end_of_faults()
            complaints = [complaint for driver in self._drivers for complaint in self._ended(driver)]
        self.faults += sum(self._rig.has_happened(arm) for arm in self._plan.arms)
        return complaints + judge(self._rig)

    def _is_finished(self) -> bool:
        """Whether a driver has read the input to its end; one that was asked to stop hasn't."""
        return any(driver.has_finished_job for driver in self._drivers)

    def _is_at_work(self, driver: ManagedProcess) -> bool:
        return driver.exit_code is None and not is_stopped(driver.pid)

    def _ended(self, driver: ManagedProcess) -> list[str]:
        """Why a driver's end is not explained by what was done to it."""
        code = driver.wait()
        return [] if code in (0, *_EXPLAINED) else [f"{driver.log.name} exited with {code}: {driver.last_words()}"]

    def _hurt_brokers(self) -> None:
        while self._to_come and self._to_come[0].at <= self._seconds():
            self._hurt(self._to_come.pop(0))

    def _hurt(self, fault: TimedFault) -> None:
        node = self._broker.nodes[fault.choice]
        if node.pid is None or any(node is other for other in self._away):
            return
        self.faults += 1
        self._away.append(node)
        send_away(node, fault.action)
        self._lasting.after(fault.seconds, lambda: self._bring_back(node, fault.action))

    def _bring_back(self, node: BrokerNode, action: Action) -> None:
        self._away = [other for other in self._away if other is not node]
        bring_back(self._broker, node, action)

    def _note_sleepers(self) -> None:
        """Whoever has stopped itself is woken when its time has come."""
        for pid in self._stopped():
            if pid not in self._asleep:
                self._asleep.add(pid)
                self._lasting.after(self._plan.sleep_seconds, lambda pid=pid: self._wake(pid))  # type: ignore[misc]

    def _wake(self, pid: int) -> None:
        self._asleep.discard(pid)
        wake(pid)

    def _stopped(self) -> list[int]:
        happened = [arm for arm in self._plan.arms if self._rig.has_happened(arm)]
        pids = {int(arm.once(self._rig.folder).read_text()) for arm in happened}
        return [pid for pid in sorted(pids) if is_stopped(pid)]

    def _end_of_faults(self) -> None:
        self._to_come.clear()
        self._note_sleepers()
        self._lasting.run(everything=True)

    def _seconds(self) -> float:
        return time.monotonic() - self._began
