"""Plays one seed: a phase with faults, then a calm one in which the bounded input must be read to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from twopc.protocol.ids import CheckpointId
from twopc.protocol.job_events import JobEvent, JobEventKind
from twopc.runtime.spec import SubtaskSpec
from twopc.testing.simulation.broker import SimBroker, TransactionalId
from twopc.testing.simulation.coordinator import SimCoordinator, SimJobClient
from twopc.testing.simulation.dice import Strike
from twopc.testing.simulation.disk import CheckpointFolder, SimSnapshots
from twopc.testing.simulation.driver import SimDriver
from twopc.testing.simulation.faults import Faults, draw
from twopc.testing.simulation.people import People
from twopc.testing.simulation.seams import playing
from twopc.testing.simulation.sink import SimSink
from twopc.testing.simulation.source import SimSource
from twopc.testing.simulation.subtask import SimSubtask
from twopc.testing.simulation.verdict import judge_run
from twopc.testing.simulation.world import Process, Stuck, World

CALM_MS = 60_000
AFTERWARDS_MS = 15_000
RESTART_MS = (50, 500)
WATCHED = (JobEventKind.COMPLETED, JobEventKind.FAILED, JobEventKind.FENCED, JobEventKind.FINISHED)


@dataclass(frozen=True, slots=True)
class Result:
    """How a run went: nothing violated, or what. `lost` is the message of a loss that was said aloud."""

    seed: int
    violations: tuple[str, ...]
    lost: str
    trace: tuple[str, ...]
    coverage: Counter[str]
    faults: Faults
    strikes: tuple[Strike, ...]


class Simulation:
    """Everything of one run; starts processes again when they are dead, as an operator would."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.source = SimSource(world, world.faults.sizes)
        self.broker = SimBroker(world, len(world.faults.sizes))
        self.broker.on_commit = self._check_commit
        self.folder = CheckpointFolder(world)
        self.snapshots = SimSnapshots(world, self.folder)
        self.people = People(world, self.folder, self._coordinator)
        self.committed_names: set[str] = set()
        self.triggered: list[CheckpointId] = []
        self.completed: list[CheckpointId] = []
        self.coordinators: list[SimCoordinator] = []
        self.drivers: list[SimDriver] = []
        self.subtasks: list[SimSubtask] = []
        self._embedded = world.faults.embedded
        world.on_crash.append(self._died)

    def run(self) -> None:
        self._start_coordinator()
        self._start_driver()
        self._plan_faults()
        world = self.world
        world.run_until(world.faults.fault_phase_ms, to_the_end=False)
        world.calm = True
        world.note("world", "is calm")
        for coordinator in self.coordinators[:-1]:
            world.kill(coordinator.process, "there is a later one")
        world.run_until(world.now_ms + CALM_MS, to_the_end=False)
        if not world.over:
            world.violated("not finished", f"after {CALM_MS} ms without faults")
        world.run_until(world.now_ms + AFTERWARDS_MS)
        judge_run(self)

    @property
    def driver(self) -> SimDriver:
        return self.drivers[-1]

    @property
    def lost(self) -> str:
        return next((driver.lost for driver in self.drivers if driver.lost), "")

    def _coordinator(self) -> SimCoordinator | None:
        coordinator = self.coordinators[-1]
        return coordinator if coordinator.process.alive else None

    def _start_coordinator(self) -> None:
        self.coordinators.append(SimCoordinator(self.world, len(self.coordinators) + 1, self.folder, self._told))

    def _told(self, event: JobEvent) -> None:
        self.people.told(event)
        if event.kind == JobEventKind.TRIGGERED:
            self.triggered.append(event.checkpoint_id)
        elif event.kind == JobEventKind.COMPLETED:
            self.completed.append(event.checkpoint_id)
        if event.kind in WATCHED:
            self._wake_driver()

    def _wake_driver(self) -> None:
        if self.drivers:
            self.driver.woken()

    def _restart_coordinator(self) -> None:
        if self._coordinator() is None:
            self._start_coordinator()

    def _start_driver(self) -> None:
        number = len(self.drivers) + 1
        client = SimJobClient(self._coordinator)
        sink = SimSink(self.broker)
        self.drivers.append(SimDriver(self.world, number, client, sink, self.source, self._spawn, self._abandon))

    def _spawn(self, spec: SubtaskSpec) -> SimSubtask:
        pid = 100 + len(self.subtasks)
        subtask = SimSubtask(
            self.world, spec, pid, self.broker, self.snapshots, self.source, self._coordinator, self._wake_driver
        )
        self.subtasks.append(subtask)
        return subtask

    def _abandon(self, stage: Sequence[SimSubtask]) -> None:
        """Kill subtasks, at once or after they have gone on for a while as zombies."""
        for subtask in stage:
            subtask.abandoned = True
            delay = 0 if self.world.calm else self.world.delay(self.world.faults.kill_delay_ms)
            process = subtask.process
            if delay:
                self.world.after(delay, lambda process=process: self.world.kill(process, "left over"))  # type: ignore[misc]
            else:
                self.world.kill(process, "its attempt is over")

    def _died(self, process: Process) -> None:
        world = self.world
        for subtask in self.subtasks:
            if subtask.process is process:
                subtask.died()
                self._wake_driver()
        for coordinator in self.coordinators:
            if coordinator.process is process:
                coordinator.died()
                if coordinator is self.coordinators[-1]:
                    world.after(world.pick(RESTART_MS), self._restart_coordinator)
                    if self._embedded:
                        world.kill(self.driver.process, "the coordinator was inside")
        if process is self.driver.process:
            self._abandon(self.driver.stage)
            if self._embedded and self.coordinators[-1].process.alive:
                world.kill(self.coordinators[-1].process, "it was inside the driver")
            if not self.driver.done:
                world.after(world.pick(RESTART_MS) + 500, self._start_driver)

    def _plan_faults(self) -> None:
        faults, plan = self.world.faults, self.world.dice.planned
        for kind, every_ms, do in (
            ("kill", faults.kill_every_ms, self._kill_one),
            ("pause", faults.pause_every_ms, self._pause_one),
            ("kill all", faults.kill_all_every_ms, self._kill_all),
            ("second coordinator", faults.second_coordinator_every_ms, self._second_coordinator),
            ("ask", faults.asked_every_ms, self.people.ask),
        ):
            for at, strike in plan(kind, every_ms, faults.fault_phase_ms):
                self.world.after(at, partial(self._strike, do, strike))

    def _strike(self, do: Callable[[int], None], strike: int) -> None:
        if not self.world.calm and not self.world.over:
            do(strike)

    def _living(self) -> list[Process]:
        everyone = [each.process for each in self.coordinators]
        everyone += [each.process for each in self.drivers] + [each.process for each in self.subtasks]
        return [process for process in everyone if process.alive]

    def _kill_one(self, strike: int) -> None:
        living = self._living()
        if living:
            victim = self.world.of(living, strike)
            self.world.coverage[f"killed {victim.kind}"] += 1
            self.world.kill(victim, "by chance")

    def _pause_one(self, strike: int) -> None:
        living = self._living()
        if living:
            victim = self.world.of(living, strike)
            self.world.coverage[f"paused {victim.kind}"] += 1
            self.world.pause(victim, "by chance", strike // len(living))

    def _kill_all(self, strike: int) -> None:
        self.world.coverage["killed everything"] += 1
        for process in self._living():
            self.world.kill(process, "with everything")

    def _second_coordinator(self, strike: int) -> None:
        """Start another beside the one that lives: an operator's mistake, or a partition healed late."""
        if not self._embedded:
            self.world.coverage["second coordinator"] += 1
            self._start_coordinator()

    def _check_commit(self, found: TransactionalId) -> None:
        metadata = {text for _, text in found.offsets.values()}
        names = {f"{found.name}@{text.removeprefix('checkpoint=')}" for text in metadata}
        self.committed_names |= names
        if not names or not names <= self.folder.completed_names:
            self.world.violated("committed without a completion record", f"{found.name}, for {sorted(names)}")


def simulate(
    seed: int, *, faults: Faults | None = None, only: frozenset[Strike] | None = None, keeps_trace: bool = True
) -> Result:
    """Play one seed and judge it; with the faults that are drawn from it or others, or `only` these strikes of them."""
    faults = faults or draw(seed)
    world = World(seed, faults, only, keeps_trace=keeps_trace)
    simulation = Simulation(world)
    with playing(world):
        try:
            simulation.run()
        except Stuck as error:
            world.violated("stuck", error)
    return Result(
        seed,
        tuple(world.violations),
        simulation.lost,
        tuple(world.trace()),
        world.coverage,
        faults,
        tuple(world.dice.applied),
    )
