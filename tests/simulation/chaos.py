"""Chaos that strikes a run from outside: kills, backoff, power failures, rivals, rot, clocks that jump."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.simulation.process import Process
from tests.simulation.run import Simulation

JUMPS_MS = (-86_400_000, -3_600_000, -1_000, 1_000, 3_600_000, 86_400_000)


class Chaos:
    """Plans a run's strikes at its start; each is done when its time comes, until the run is calm."""

    def __init__(self, run: Simulation) -> None:
        self._run = run
        self._world = run.world

    def plan(self) -> None:
        faults, planned = self._world.faults, self._world.dice.planned
        for kind, every_ms, do in (
            ("kill", faults.kill_every_ms, self._kill_one),
            ("pause", faults.pause_every_ms, self._pause_one),
            ("kill all", faults.kill_all_every_ms, self._kill_all),
            ("second coordinator", faults.second_coordinator_every_ms, self._second_coordinator),
            ("second driver", faults.second_driver_every_ms, self._second_driver),
            ("wall clock jumps", faults.clock_jumps_every_ms, self._wall_clock_jumps),
            ("cut off", faults.cut_off_every_ms, self._cut_off),
            ("ask", faults.asked_every_ms, self._run.client_actions.act),
            ("bit rot", faults.bit_rot_every_ms, self._rot),
            ("input deleted", faults.input_deleted_every_ms, self._delete_input),
            ("stop", faults.stopped_every_ms, self._stop_driver),
            ("sink taken out", faults.sink_removed_every_ms, self._take_files_out),
            ("go back", faults.back_every_ms, self._run.go_back),
        ):
            for at, strike in planned(kind, every_ms, faults.fault_phase_ms):
                self._world.after(at, partial(self._strike, do, strike))

    def _strike(self, do: Callable[[int], None], strike: int) -> None:
        if not self._world.calm and not self._world.over:
            do(strike)

    def _one(self, strike: int) -> Process:
        return self._world.of(self._run.living(), strike)

    def _kill_one(self, strike: int) -> None:
        if self._run.living():
            victim = self._one(strike)
            self._world.coverage[f"killed {victim.kind}"] += 1
            self._world.kill(victim, "by chance")

    def _pause_one(self, strike: int) -> None:
        if self._run.living():
            victim = self._one(strike)
            self._world.coverage[f"paused {victim.kind}"] += 1
            self._world.pause(victim, "by chance", strike // 16)

    def _cut_off(self, strike: int) -> None:
        """A machine freezes for longer than the job may wait: its streams end, and nobody says that it is dead."""
        running = [subtask for subtask in self._run.subtasks if subtask.process.alive and not subtask.abandoned]
        if running:
            self._world.of(running, strike).cut_off()

    def _kill_all(self, strike: int) -> None:
        """Everything at once, and the machine with the disk perhaps too."""
        self._world.coverage["killed everything"] += 1
        for process in self._run.living():
            self._world.kill(process, "with everything")
        if self._world.faults.power_fails:
            self._run.folder.lose_power(strike)

    def _second_coordinator(self, strike: int) -> None:
        """Start another beside the one that lives: an operator's mistake, or a partition healed late."""
        if not self._world.faults.embedded:
            self._world.coverage["second coordinator"] += 1
            self._run.start_coordinator()

    def _second_driver(self, strike: int) -> None:
        if not self._world.faults.embedded:
            self._world.coverage["second driver"] += 1
            self._run.start_driver()

    def _wall_clock_jumps(self, strike: int) -> None:
        if self._run.living():
            victim = self._one(strike)
            victim.skew_ms += self._world.of(JUMPS_MS, strike // 16)
            self._world.coverage["wall clock jumped"] += 1
            self._world.note(victim.name, "has its wall clock moved to", victim.skew_ms)

    def _stop_driver(self, strike: int) -> None:
        living = [driver for driver in self._run.drivers if driver.process.alive]
        if living:
            self._world.of(living, strike).stop(at_once=strike // 16 % 4 == 0)

    def _take_files_out(self, strike: int) -> None:
        self._run.take_files_out()

    def _rot(self, strike: int) -> None:
        self._run.folder.rot(strike)

    def _delete_input(self, strike: int) -> None:
        """Retention takes what the newest checkpoint has read: nobody but a heal still needs it."""
        begins_at = self._run.broker.input_begins_at
        for split, position in self._run.folder.lasting_positions().items():
            if position > begins_at[split]:
                begins_at[split] = position
                self._world.coverage["broker input deleted"] += 1
                self._world.note("broker", "INPUT DELETED", f"{split} before {position}")
