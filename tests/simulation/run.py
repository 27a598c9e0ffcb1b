"""Plays one seed: a phase with faults, then a calm one in which the bounded input must be read to its end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tests.simulation.broker import SimBroker
from tests.simulation.broker_model import GroupOffsets
from tests.simulation.cells import Peers
from tests.simulation.client_actions import ClientActions
from tests.simulation.coordinator import SimCoordinator, SimJobClient
from tests.simulation.disk import CheckpointFolder
from tests.simulation.driver import SimDriver
from tests.simulation.files import SimFiles, SimFileSink
from tests.simulation.global_commits import GlobalTable
from tests.simulation.job import (
    FILES,
    FIRST_SINK,
    GROWING,
    INPUTS,
    JOB,
    KAFKA_TOPICS,
    OWN,
    OWN_SOURCE,
    graph,
    joined_graph,
    meets,
    sizes_of,
    without,
)
from tests.simulation.joins import RATES_SOURCE, joined_of
from tests.simulation.own_topic import OwnSource
from tests.simulation.process import Process
from tests.simulation.rates import Rates
from tests.simulation.sink import SimSink
from tests.simulation.snapshots import SimSnapshots
from tests.simulation.source import SimSource
from tests.simulation.subtask import SimSubtask
from tests.simulation.timed_job import timed_graph
from tests.simulation.world import World
from twopc import events
from twopc.checkpoints.catalog import positions_of_kept
from twopc.graph import JobDefinition
from twopc.kafka.positions.witness import WitnessMetadata
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.runtime.spec import SubtaskSpec
from twopc.sink import Sink
from twopc.source import Source

CALM_MS = 60_000
AFTERWARDS_MS = 15_000
RESTART_MS = (50, 500)
DRAIN_MS = 400
"""How often somebody asks for the end of a job that has none."""

LATEST = "latest"
WATCHED = frozenset[type]({events.AttemptFailed, events.AttemptFenced, events.JobFinished})
FOLLOWED = WATCHED | {
    events.CheckpointTriggered,
    events.CheckpointCompleted,
    events.CheckpointAborted,
    events.CheckpointConfirmed,
    events.AttemptStarted,
}


class Simulation:
    """Everything of one run; starts processes again when they are dead, as an operator would."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broker = SimBroker(world)
        self.broker.on_commit = self._check_commit
        self.files = SimFiles(world, self._check_file)
        self.folder = CheckpointFolder(world)
        self.snapshots = SimSnapshots(world, self.folder)
        self.client_actions = ClientActions(world, self.folder, self._coordinator)
        self.committed_names: set[str] = set()
        self.table = GlobalTable(world, self.committed_names) if world.faults.commits_globally else None
        self.definition = self._job()
        self.removed_at: dict[str, int] | None = None
        """Where the splits stood when the sink that writes files was taken out."""
        self.newest_attempt = AttemptId(0)
        self.triggered: list[CheckpointId] = []
        self.completed: list[CheckpointId] = []
        self.coordinators: list[SimCoordinator] = []
        self.drivers: list[SimDriver] = []
        self.subtasks: list[SimSubtask] = []
        self.restore_from = LATEST
        """What the next driver restores, which is then the job's own affair again."""
        self.went_back = False
        self._embedded = world.faults.embedded
        self._peers = Peers(world, self.wanted, self._recovering)
        world.peers = self._peers.seen_by
        world.stop_another = self._stop_another
        world.on_crash.append(self._died)

    def start(self) -> None:
        self.start_coordinator()
        self.start_driver()

    def run(self) -> None:
        world = self.world
        world.run_until(world.faults.fault_phase_ms, to_the_end=False)
        world.calm = True
        world.note("world", "is calm")
        self._leave_one_of_each()
        if world.faults.ends_drained:
            self._drain()
        world.run_until(world.now_ms + CALM_MS, to_the_end=False)
        if not world.over:
            world.violated("not finished", f"after {CALM_MS} ms without faults")
        world.run_until(world.now_ms + AFTERWARDS_MS)

    def _drain(self) -> None:
        if not self.world.over:
            self.client_actions.drain()
            self.world.after(DRAIN_MS, self._drain)

    def _leave_one_of_each(self) -> None:
        """Somebody cleans up behind the rivals; who dies now is not started again while the other lives.

        Where one has finished the job, whoever runs it once more is left: nobody would end what that one has open.
        """
        for coordinator in self.coordinators[:-1]:
            self.world.kill(coordinator.process, "there is a later one")
        living = [driver for driver in self.drivers if driver.process.alive]
        if self.driver.done:
            living.sort(key=lambda driver: driver.attempt)
        for driver in living[:-1]:
            self.world.kill(driver.process, "there is a later one")

    def _job(self) -> JobDefinition:
        faults = self.world.faults
        sources: dict[str, Source] = {
            name: SimSource(self.broker, INPUTS[name], sizes, grows=name == GROWING and faults.input_grows_ms > 0)
            for name, sizes in sizes_of(faults).items()
        }
        if OWN in faults.sinks:
            sources[OWN_SOURCE] = OwnSource(self.broker)
        sinks: dict[str, Sink] = {
            name: SimSink(self.broker, name, self.table if name == FIRST_SINK else None)
            if name in KAFKA_TOPICS
            else SimFileSink(self.files)
            for name in faults.sinks
        }
        if faults.waits_for:
            return timed_graph(faults, sources, sinks)
        if (joined := joined_of(faults)) is not None:
            sources[RATES_SOURCE] = Rates(self.broker)
            return joined_graph(sources, sinks, joined, faults.sizes)
        return graph(sources, sinks, meeting=meets(faults), quiet=faults.quiet)

    @property
    def driver(self) -> SimDriver:
        """The one that finished the job, or the last that lives, or the last."""
        done = [driver for driver in self.drivers if driver.done]
        living = [driver for driver in self.drivers if driver.process.alive]
        return (done or living or self.drivers)[-1]

    @property
    def refused(self) -> str:
        return next((driver.refused for driver in self.drivers if driver.refused), "")

    @property
    def lost(self) -> str:
        return next((driver.lost for driver in self.drivers if driver.lost), "")

    def _coordinator(self) -> SimCoordinator | None:
        coordinator = self.coordinators[-1]
        return coordinator if coordinator.process.alive else None

    def start_coordinator(self) -> None:
        self.coordinators.append(SimCoordinator(self.world, len(self.coordinators) + 1, self.folder, self._told))

    def _told(self, event: events.CoordinatorEvent) -> None:
        if type(event) not in FOLLOWED:
            return
        self.client_actions.told(event)
        if isinstance(event, events.CheckpointTriggered):
            self.triggered.append(event.checkpoint_id)
        elif isinstance(event, events.CheckpointCompleted):
            self.completed.append(event.checkpoint_id)
            self._wake_driver(to_sweep=True)
        self._peers.told(event)
        self.newest_attempt = max(self.newest_attempt, event.attempt)
        if type(event) in WATCHED:
            self._wake_driver()

    def _wake_driver(self, *, to_sweep: bool = False) -> None:
        for driver in self.drivers:
            if driver.process.alive and (not to_sweep or driver.sweeps):
                driver.woken()

    def _restart_coordinator(self) -> None:
        if self._coordinator() is None:
            self.start_coordinator()

    def start_driver(self) -> None:
        number = len(self.drivers) + 1
        client = SimJobClient(self._coordinator)
        self.drivers.append(
            SimDriver(
                self.world,
                number,
                client,
                self.definition,
                self._spawn,
                self._abandon,
                partial(positions_of_kept, self.folder, JOB),
                lambda message: self.folder.is_blamed(message) or self.broker.ended_input(message),
                self._recoveries_died,
                self.restore_from,
                self._asked_in_vain,
                self._submitted,
            )
        )
        self.restore_from = LATEST

    def _recoveries_died(self) -> int:
        """How many drivers before this one died in their recovery, one after the other."""
        died = 0
        for driver in reversed(self.drivers[:-1]):
            if not driver.recovering:
                break
            died += 1
        return died

    def _spawn(self, spec: SubtaskSpec) -> SimSubtask:
        pid = 100 + len(self.subtasks)
        subtask = SimSubtask(
            self.world, spec, pid, self.broker, self.snapshots, self.definition, self._coordinator, self._wake_driver
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
        for subtask in self.subtasks:
            if subtask.process is process:
                subtask.died()
                self._wake_driver()
        for coordinator in self.coordinators:
            if coordinator.process is process:
                self._coordinator_died(coordinator)
        for driver in self.drivers:
            if driver.process is process:
                self._driver_died(driver)

    def _coordinator_died(self, coordinator: SimCoordinator) -> None:
        coordinator.died()
        if coordinator is self.coordinators[-1]:
            self.world.after(self.world.pick(RESTART_MS), self._restart_coordinator)
            if self._embedded:
                self.world.kill(self.driver.process, "the coordinator was inside")

    def _driver_died(self, driver: SimDriver) -> None:
        self._abandon(driver.stage)
        if self._embedded and self.coordinators[-1].process.alive:
            self.world.kill(self.coordinators[-1].process, "it was inside the driver")
        noticed_ms = 0 if driver.gave_up else 500
        self.world.after(self.world.pick(RESTART_MS) + noticed_ms, self._restart_driver)

    def take_files_out(self) -> None:
        """A person ends the run with kill -9, and starts the job without the sink that writes files."""
        whole = self.definition
        if FILES not in whole.sinks or len(whole.sinks) == 1 or self.driver.done:
            return
        self.world.coverage["a sink taken out"] += 1
        self.definition = without(whole, FILES)
        for driver in self.drivers:
            self.world.kill(driver.process, "its job is changed")

    def go_back(self, strike: int) -> None:
        """A person ends the run with kill -9, and starts the job from an older checkpoint than the latest."""
        older = self.folder.kept()[:-1]
        if not older or self.driver.done:
            return
        self.restore_from, self.went_back = str(self.world.of(older, strike)), True
        self.world.coverage["went back"] += 1
        self.world.note("people", "GO BACK", self.restore_from)
        for driver in self.drivers:
            self.world.kill(driver.process, "its job is to go back")

    def _asked_in_vain(self, said: str) -> bool:
        """Whether a driver had to refuse what a person asked for: the job without a sink, or a checkpoint that is gone.

        Then the person puts the sink back, and has the job go on as it was.
        """
        if self.went_back and "can't be restored: give 'latest'" in said:
            return True
        refused = FILES in self.world.faults.sinks and f"has output of {FILES!r}" in said
        if refused and FILES not in self.definition.sinks:
            self.world.coverage["a sink that was taken out put back"] += 1
            self.definition = self._job()
        return refused

    def _submitted(self, definition: JobDefinition) -> None:
        """A job without the files has begun to run: whatever completed checkpoints have of them is committed."""
        if FILES in self.world.faults.sinks and FILES not in definition.sinks and self.removed_at is None:
            self.removed_at = self.folder.lasting_positions()

    def _restart_driver(self) -> None:
        if not any(driver.process.alive or driver.done for driver in self.drivers):
            self.start_driver()

    def _stop_another(self, process: Process) -> None:
        """Have one that the job needs away, just before this one is stopped."""
        others = [each for each in self.wanted() if each is not process and each.alive]
        if others and self.world.faults.aimed_pauses:
            self.world.kill(others[-1], "just before another")
        elif others:
            self.world.pause(others[0], "just before another", 2)

    def living(self) -> list[Process]:
        """All processes that live, paused ones too."""
        everyone = [each.process for each in self.coordinators]
        everyone += [each.process for each in self.drivers] + [each.process for each in self.subtasks]
        return [process for process in everyone if process.alive]

    def wanted(self) -> list[Process]:
        """The processes that the job needs now."""
        stage = [subtask.process for subtask in self.driver.stage if not subtask.ended] if self.drivers else []
        return [self.coordinators[-1].process, *([self.driver.process] if self.drivers else []), *stage]

    def _recovering(self) -> list[Process]:
        return [driver.process for driver in self.drivers if driver.recovering]

    def _check_commit(self, name: str, offsets: GroupOffsets) -> None:
        witnesses = {WitnessMetadata.parse(text) for _, text in offsets.values()}
        names = {f"{name}@{witness.checkpoint_id}" for witness in witnesses if witness is not None}
        pre_committed = self.broker.pre_committed.get((name, self.broker.ids[name].start_ms))
        if pre_committed is not None:
            names.add(pre_committed)
        self.committed_names |= names
        if not names or not names <= self.folder.completed_names:
            self.world.violated("committed without a completion record", f"{name}, for {sorted(names)}")

    def _check_file(self, name: str) -> None:
        self.committed_names.add(name)
        if name not in self.folder.completed_names:
            self.world.violated("committed without a completion record", name)
