"""A driver process: production's machine, whose actions are carried out in the world, each in a lane of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from tests.simulation.coordinator import SimJobClient
from tests.simulation.faults import Faults
from tests.simulation.job import JOB
from tests.simulation.process import Lane
from tests.simulation.subtask import SimSubtask
from tests.simulation.world import World
from twopc import events
from twopc.config import RunSettings
from twopc.driver.actions import Drain, EndAttempt, Settle, SettleLoss, StartAttempt, Submit
from twopc.driver.effects import Action, Log
from twopc.driver.host import Told
from twopc.driver.machine import (
    AbortRequested,
    ActionFailed,
    ActionRequest,
    Answer,
    Driver,
    Event,
    Output,
    Over,
    Start,
    StopRequested,
    SubtaskEnded,
    Tick,
)
from twopc.driver.restart import PlannedRestart
from twopc.driver.running_job import RunningJob
from twopc.errors import (
    CheckpointCorrupted,
    ConfigurationError,
    Fenced,
    ProtocolViolation,
    TransactionLost,
    TwoPhaseCommitError,
    Unavailable,
)
from twopc.faults.points import CrashPoint, reached
from twopc.graph import JobDefinition
from twopc.job_connectors import JobSink, JobSource
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.runtime.spec import SubtaskSpec
from twopc.sink import Committer

HEALED = "healed a loss"
LOOK_MS = 100
"""The longest time until something that happened is looked at."""

IDLE_MS = 2_000
RESTART_MS = (50, 300)
DRAIN_MS = 10_000
DRAIN_LOOK_MS = 500
CHECKPOINT_TIMEOUT_MS = 2_000


@lru_cache(64)
def _settings(faults: Faults, parallelism: int, restart_ms: int) -> RunSettings:
    return RunSettings(
        parallelism=parallelism,
        checkpoint_inline_bytes=faults.inline_bytes,
        checkpoint_interval_ms=faults.interval_ms,
        checkpoint_timeout_ms=CHECKPOINT_TIMEOUT_MS,
        checkpoint_min_pause_ms=faults.min_pause_ms,
        checkpoint_max_concurrent=faults.max_concurrent,
        checkpoint_tolerable_failures=faults.tolerable_failures,
        checkpoints_retained=faults.retained,
        until_end=not faults.input_grows_ms and not faults.ends_drained,
        host="process",
        restart_strategy="fixed-delay",
        restart_attempts=faults.restart_attempts,
        restart_delay_ms=restart_ms,
        restart_delay_max_ms=restart_ms,
    )


@dataclass(slots=True)
class SimStage:
    """The subtasks of one attempt."""

    subtasks: list[SimSubtask]
    abandon: Callable[[Sequence[SimSubtask]], None]

    def wait(self, timeout: float) -> bool:
        return any(not each.process.alive for each in self.subtasks)

    def drain(self, timeout: float) -> None:
        raise NotImplementedError("the world goes on meanwhile: see SimDriver")

    def error(self) -> TwoPhaseCommitError | None:
        dead = (each for each in self.subtasks if not each.process.alive and not each.ended)
        return next((Unavailable(f"{each.process.name} died") for each in dead), None)

    def told_why(self) -> Told:
        return Told.YES if any(each.failed for each in self.subtasks) else Told.PERHAPS

    def shortage(self) -> str | None:
        return None

    def kill(self) -> None:
        self.abandon(self.subtasks)


@dataclass(slots=True)
class SimHost:
    """The host of one driver's subtasks, and its edge."""

    definition: JobDefinition
    source: JobSource
    sink: JobSink
    coordinator: SimJobClient
    spawn: Callable[[SubtaskSpec], SimSubtask]
    abandon: Callable[[Sequence[SimSubtask]], None]
    kept_positions: Callable[[], Sequence[SplitPosition]]
    running: SimStage | None = None
    committer: Committer | None = None
    host: Any = field(init=False)

    def __post_init__(self) -> None:
        self.host = self

    def notice(self) -> str | None:
        return None

    def refusal(self, parallelism: int) -> str | None:
        return None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> SimStage:
        return SimStage([self.spawn(spec) for spec in specs], self.abandon)

    def close(self) -> None:
        """A process that is gone has no subtasks: see Simulation."""

    def reached(self, point: CrashPoint, checkpoint: CheckpointId) -> None:
        reached(point, checkpoint=checkpoint)

    def all_damage(self, error: CheckpointCorrupted, checkpoint_id: CheckpointId | None) -> TwoPhaseCommitError:
        return error

    def remove_work(self, attempt: AttemptId) -> None:
        """There is nothing on this machine."""


class SimDriver:
    """One process. `done` once the job has finished; `lost` or `refused` has the message that ends it otherwise."""

    def __init__(
        self,
        world: World,
        number: int,
        client: SimJobClient,
        definition: JobDefinition,
        spawn: Callable[[SubtaskSpec], SimSubtask],
        abandon: Callable[[Sequence[SimSubtask]], None],
        kept: Callable[[], Sequence[SplitPosition]],
        is_blamed: Callable[[str], bool],
        recoveries_died: Callable[[], int],
        restore_from: str,
        asked_in_vain: Callable[[str], bool],
        submitted: Callable[[JobDefinition], None],
    ) -> None:
        self.process = world.process(f"driver-{number}", "driver")
        self.done = False
        self.lost = ""
        self.refused = ""
        self.recovering = False
        self.gave_up = False
        self.finished_ms = 0
        self._world = world
        self._client = client
        self._is_blamed = is_blamed
        self._recoveries_died = recoveries_died
        self._asked_in_vain = asked_in_vain
        self._submitted = submitted
        self._stopping = False
        self._lane = Lane(self.process, "main")
        self._watching = Lane(self.process, "events")
        self._edge: Any = SimHost(definition, definition.source, definition.sink, client, spawn, abandon, kept)
        self._driver = Driver(RunningJob(definition, "", ""), self._drawn_settings(), restore_from)
        self._ended_subtasks: SimStage | None = None
        self._deleted = 0
        self._end = ""
        self._look_at: int | None = None
        self._tick_at: float | None = None
        world.note(self.process.name, "starts")
        world.after(world.delay(100), partial(self._step, Start()), self._lane)

    def _drawn_settings(self) -> RunSettings:
        """Another parallelism in each attempt; every other job ends with one subtask, which has all state together."""
        world = self._world
        alone = world.calm and world.rng.random() < 0.5
        parallelism = 1 if alone else world.between(1, world.faults.most_subtasks)
        restart_ms = world.pick(RESTART_MS)
        return _settings(world.faults, parallelism, restart_ms)

    @property
    def stage(self) -> list[SimSubtask]:
        """The subtasks of the attempt that runs."""
        return [] if self._edge.running is None else self._edge.running.subtasks

    @property
    def attempt(self) -> AttemptId:
        """The attempt that it runs, or ran last."""
        return self._driver.progress.current.attempt

    @property
    def sweeps(self) -> bool:
        """Whether a checkpoint that has completed lets it look for what lingers, or commit globally."""
        return self._driver.progress.current.completed == 0 or self._world.faults.commits_globally

    def woken(self) -> None:
        """Something has happened: to a subtask, or at the coordinator, which is being watched."""
        if self._look_at is not None:
            self._look_in(self._world.between(1, LOOK_MS))

    def stop(self, *, at_once: bool) -> None:
        """SIGTERM, or a second Ctrl-C: the process is to end with a last checkpoint, or `at_once`."""
        waiting = self._driver._waiting
        if waiting is not None and not self.done:
            self._stopping = True
            state = type(waiting.effect).__name__
            self._world.coverage[f"stopped in {state}"] += 1
            self._world.note(self.process.name, "is told to stop", "at once" if at_once else "", state)
            event = AbortRequested(KeyboardInterrupt()) if at_once else StopRequested()
            self._world.after(0, partial(self._step, event), self._lane)

    def _look_in(self, delay_ms: int) -> None:
        at = self._world.now_ms + delay_ms
        if self._look_at is None or at < self._look_at:
            self._look_at = at
            self._world.after(delay_ms, partial(self._look, at), self._watching)

    def _look(self, at: int) -> None:
        """See which subtasks have ended, and ask how the attempt goes."""
        if at != self._look_at:
            return
        self._look_at = None
        stage = self._edge.running
        if stage is None or self.done:
            return
        if stage is not self._ended_subtasks and stage.wait(0):
            self._ended_subtasks = stage
            self._step(SubtaskEnded(stage.error(), stage.told_why()))
        again = IDLE_MS
        try:
            for event in self._client.status(JOB):
                if isinstance(event, events.JobFinished):
                    self._end = event.message
                self._step(event)
        except Unavailable:
            again = LOOK_MS
        except TwoPhaseCommitError as error:
            self._world.note(self.process.name, "can't watch:", error)
        if self._edge.running is not None and not self.done:
            self._look_in(again)

    def _step(self, event: Event) -> None:
        """Let the machine decide; nothing that it wants waits here."""
        for output in self._driver.step(event, self._world.monotonic()):
            self._carry_out(output)
        self._arm()

    def _arm(self) -> None:
        """Have a tick when the machine's deadline, a time of this process, has come."""
        deadline = self._driver.deadline
        if deadline is None or (self._tick_at is not None and self._tick_at <= deadline):
            return
        self._tick_at = deadline
        delay_ms = max(0, round((deadline - self._world.monotonic()) * 1000))
        self._world.after(delay_ms + 1, partial(self._tick, deadline), self._lane)

    def _tick(self, deadline: float) -> None:
        if deadline != self._tick_at:
            return
        self._tick_at = None
        if self._edge.running is None:
            self._driver.settings = self._drawn_settings()
        self._step(Tick())

    def _carry_out(self, output: Output) -> None:
        match output:
            case ActionRequest(number, Drain()):
                self._finished()
                self._drain(number, self._world.now_ms + DRAIN_MS)
            case ActionRequest(number, action) if action.on_calling_thread:
                self._world.after(0, partial(self._step, self._answered(number, action)), self._lane)
            case ActionRequest(number, action):
                self._note_recovering(action)
                self._world.after(0, partial(self._act, number, action), Lane(self.process, type(action).__name__))
            case Log() if output.level >= logging.WARNING:
                self._world.note(self.process.name, output.message)
            case Over():
                self._over(output.error)

    def _note_recovering(self, action: Action[Any]) -> None:
        if isinstance(action, StartAttempt):
            self.recovering = True
            self._deleted = self._world.coverage["broker input deleted"]
        elif isinstance(action, EndAttempt):
            self.recovering = False
            self._world.coverage["rescaled"] += "subtasks are wanted" in action.reason

    def _act(self, number: int, action: Action[Any]) -> None:
        if isinstance(action, StartAttempt) and self._recoveries_died() >= 2:
            reached(CrashPoint.RECOVERY_AGAIN)
        answer = self._answered(number, action)
        if isinstance(answer, Answer):
            self._note(action, answer.value)
        self._world.after(0, partial(self._step, answer), self._lane)

    def _note(self, action: Action[Any], answer: Any) -> None:
        if isinstance(action, SettleLoss):
            self._world.coverage[HEALED] += 1
        elif isinstance(action, Settle):
            for item in answer:
                self._world.note(self.process.name, item.committable.name, item.outcome.value, item.evidence)

    def _answered(self, number: int, action: Action[Any]) -> Answer | ActionFailed:
        try:
            answer = Answer(number, action.carry_out(self._edge))
        except (TwoPhaseCommitError, OSError) as error:
            return ActionFailed(number, error)
        if isinstance(action, Submit):
            self.recovering = False
            self._submitted(self._edge.definition)
            self._look_in(IDLE_MS)
        return answer

    def _finished(self) -> None:
        """The job has finished; after a stop, or a drain before the input was whole, a person runs it again."""
        self._world.note(self.process.name, "FINISHED", self._end)
        sources = self._edge.definition.sources.values()
        if self._stopping or any(source.misses_some(self.attempt) for source in sources):
            return
        self.done = self._world.over = True
        self.finished_ms = self._world.now_ms

    def _drain(self, number: int, until_ms: int) -> None:
        """Answer when all subtasks have ended, or it has taken too long."""
        if self._world.now_ms >= until_ms or not any(each.process.alive for each in self.stage):
            self._step(Answer(number, None))
        else:
            self._world.after(DRAIN_LOOK_MS, partial(self._drain, number, until_ms), self._lane)

    def _over(self, error: BaseException | None) -> None:
        """The process ends; what made it end is known to be a fault's doing, or is a violation."""
        world, said = self._world, str(error)
        self.recovering = False
        if self.done:
            return
        if error is None or isinstance(error, KeyboardInterrupt):
            self._leave("it was stopped")
            return
        world.note(self.process.name, "ends:", type(error).__name__, error)
        if self._is_blamed(said):
            self.refused = said
            world.over = True
        elif isinstance(error, TransactionLost) and not error.restartable:
            self.lost = said
            world.over = True
        elif self._asked_in_vain(said):
            self._leave("it was asked in vain")
        elif self._is_wrong(error):
            world.violated(f"the driver met {type(error).__name__}", error)
        else:
            world.coverage["restarts exhausted"] += self._driver._restarts.used >= world.faults.restart_attempts > 0
            if isinstance(error, Fenced):
                world.kill(self.process, "another driver has the job")
            else:
                self._leave("it gave up")

    def _leave(self, why: str) -> None:
        """The process ends by itself, and a person runs the job again."""
        self.gave_up = True
        self._world.kill(self.process, why)

    def _is_wrong(self, error: BaseException) -> bool:
        """Whether no driver should end so; what a subtask met is judged there."""
        if not isinstance(error, TwoPhaseCommitError):
            return True
        # Input may go between the question and the plan: true, and the next start asks again.
        excused = self._driver.progress.current.failure or self._world.coverage["broker input deleted"] > self._deleted
        if isinstance(error, PlannedRestart):
            return True
        return isinstance(error, ProtocolViolation | CheckpointCorrupted | ConfigurationError) and not excused
