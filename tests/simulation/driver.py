"""A driver process: starts attempts with the production recovery and planner, watches, restarts.

What `twopc.driver.attempt` and `run` do around recovery is here in events, since they wait for real threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from tests.simulation.coordinator import JOB, SimJobClient, settings_of
from tests.simulation.process import Lane
from tests.simulation.sink import SimCommitter, SimSink
from tests.simulation.source import SimSource
from tests.simulation.subtask import SimSubtask
from tests.simulation.world import World
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.recovery import Planner, assign, recover
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
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, SubtaskIndex
from twopc.protocol.job_events import JobEventKind
from twopc.runtime.spec import SubtaskSpec, concerning

HEALED = "healed a loss"
LOOK_MS = 100
"""The longest time until something that happened is looked at."""

IDLE_MS = 2_000
RESTART_MS = (50, 300)
DRAIN_MS = 10_000
SWEEP_MS = 2_000


@lru_cache(64)
def _settings(parallelism: int, interval_ms: int, timeout_ms: int, inline_bytes: int) -> RunSettings:
    return RunSettings(
        parallelism=parallelism,
        checkpoint_inline_bytes=inline_bytes,
        checkpoint_interval_ms=interval_ms,
        checkpoint_timeout_ms=timeout_ms,
        until_end=True,
        host="process",
    )


class SimDriver:
    """One process. `done` once the job has finished; `lost` or `refused` has the message that ends it otherwise."""

    def __init__(
        self,
        world: World,
        number: int,
        client: SimJobClient,
        sink: SimSink,
        source: SimSource,
        spawn: Callable[[SubtaskSpec], SimSubtask],
        abandon: Callable[[Sequence[SimSubtask]], None],
        is_blamed: Callable[[str], bool],
        recoveries_died: Callable[[], int],
    ) -> None:
        self.process = world.process(f"driver-{number}", "driver")
        self.done = False
        self.lost = ""
        self.refused = ""
        self.recovering = False
        self.stage: list[SimSubtask] = []
        self._world = world
        self._client = client
        self._job_client: Any = client
        self._sink = sink
        self._source = source
        self._planner = Planner(source, bounded=True)
        self._checkpoints = settings_of(world.faults)
        self._spawn = spawn
        self._abandon = abandon
        self._is_blamed = is_blamed
        self._recoveries_died = recoveries_died
        self._lane = Lane(self.process, "main")
        self._context: JobContext | None = None
        self._committer: SimCommitter | None = None
        self._restarts = False
        self._restored = 0
        self._deleted = 0
        self._sweep_at = 0
        self.finished_ms = 0
        self._supervise_at: int | None = None
        world.note(self.process.name, "starts")
        world.after(world.delay(100), self._attempt, self._lane)

    def _attempt(self) -> None:
        parallelism = self._parallelism()
        checkpoints = self._checkpoints
        inline_bytes = self._world.faults.inline_bytes
        settings = _settings(parallelism, checkpoints.interval_ms, checkpoints.timeout_ms, inline_bytes)
        restart_of, self._context = self.attempt, None
        self.recovering = True
        self._deleted = self._world.coverage["broker input deleted"]
        if self._recoveries_died() >= 2:
            reached(CrashPoint.RECOVERY_AGAIN)
        try:
            started = self._client.start_attempt(
                JOB, parallelism, checkpoints, restart=self._restarts, restart_of=restart_of
            )
            context = self._context = JobContext(JOB, started.attempt, parallelism, settings)
            committer = self._committer = self._sink.open_committer(context)
            self._sweep_at = 0
            self._restored = 0 if started.restored is None else started.restored.checkpoint_id
            found = recover(self._job_client, self._source, committer, context, started)
            for item in found.settled:
                self._world.note(self.process.name, item.committable.name, item.outcome.value, item.evidence)
            if found.restored is not started.restored:
                self._world.coverage[HEALED] += 1
            splits = self._planner.plan(self._job_client, context, started, found.restored)
            snapshots = () if found.restored is None else found.restored.snapshots
            for index, mine in enumerate(assign(splits, parallelism)):
                subtask = SubtaskIndex(index)
                concerned = concerning(subtask, mine, snapshots)
                spec = SubtaskSpec(JOB, started.attempt, subtask, parallelism, "", "", settings, mine, concerned)
                self.stage.append(self._spawn(spec))
            self.recovering = False
        except TwoPhaseCommitError as error:
            self._failed(error)
            return
        self._supervise_in(IDLE_MS)

    def _parallelism(self) -> int:
        """Another in each attempt; every other job ends with one subtask, which has the state of all put together."""
        world = self._world
        return 1 if world.calm and world.rng.random() < 0.5 else world.between(1, world.faults.most_subtasks)

    @property
    def attempt(self) -> AttemptId:
        """The attempt that it runs, or ran last."""
        return NO_ATTEMPT if self._context is None else self._context.attempt

    @property
    def sweeps(self) -> bool:
        """Whether it is time to look for what lingers, once a checkpoint has completed."""
        return self._world.now_ms >= self._sweep_at

    def woken(self) -> None:
        """Something has happened: to a subtask, or at the coordinator, which is being watched."""
        if self._supervise_at is not None:
            self._supervise_in(self._world.between(1, LOOK_MS))

    def _supervise_in(self, delay_ms: int) -> None:
        at = self._world.now_ms + delay_ms
        if self._supervise_at is None or at < self._supervise_at:
            self._supervise_at = at
            self._world.after(delay_ms, partial(self._supervise, at), self._lane)

    def _supervise(self, at: int) -> None:
        if at != self._supervise_at:
            return
        self._supervise_at = None
        again = IDLE_MS
        try:
            over = self._look()
        except Unavailable:
            over, again = None, LOOK_MS
        except TwoPhaseCommitError as error:
            self._failed(error)
            return
        if not self.done and all(each.ended for each in self.stage):
            self._finish("all subtasks have ended well")
        if self.done:
            return
        if over is None and any(not each.process.alive and not each.ended for each in self.stage):
            over = Unavailable("a subtask died")
        if over is not None:
            self._failed(over)
        else:
            self._supervise_in(again)

    def _look(self) -> TwoPhaseCommitError | None:
        """Ask how the attempt goes; return what makes it end, if something does."""
        context = self._context
        assert context is not None
        for event in self._client.status(JOB):
            if event.attempt != context.attempt:
                return Fenced("another driver has started an attempt")
            match event.kind:
                case JobEventKind.FINISHED:
                    self._finish(event.message)
                case JobEventKind.FAILED | JobEventKind.FENCED:
                    return Unavailable(event.message)
                case JobEventKind.STATUS if event.checkpoint_id > self._restored and self.sweeps:
                    self._sweep()
                    self._sweep_at = self._world.now_ms + SWEEP_MS
                case _:
                    pass
        return None

    def _finish(self, why: str) -> None:
        self.done = self._world.over = True
        self.finished_ms = self._world.now_ms
        self._world.note(self.process.name, "FINISHED", why)
        self._world.after(0, self._sweep_last, self._lane)
        self._world.after(DRAIN_MS, lambda: self._abandon(self.stage))

    def _sweep_last(self) -> None:
        try:
            self._sweep()
        except Unavailable:
            self._world.after(LOOK_MS, self._sweep_last, self._lane)

    def _sweep(self) -> None:
        assert self._committer is not None, "the attempt has recovered"
        self._committer.abort_lingering()

    def _failed(self, error: TwoPhaseCommitError) -> None:
        self._world.note(self.process.name, "attempt failed:", type(error).__name__, error)
        self._restarts = True
        self.recovering = False
        self._abandon(self.stage)
        self.stage = []
        if self._is_blamed(str(error)):
            self.refused = str(error)
            self._world.over = True
            return
        if isinstance(error, Fenced):
            self._world.kill(self.process, "another driver has the job")
            return
        if isinstance(error, TransactionLost):
            self.lost = str(error)
            self._world.over = True
            return
        if self._world.coverage["broker input deleted"] > self._deleted:
            # It went between the question and the plan: true, and the next start asks again.
            error = Unavailable(str(error))
        if isinstance(error, ProtocolViolation | CheckpointCorrupted | ConfigurationError):
            self._world.violated(f"the driver met {type(error).__name__}", error)
            return
        if self._context is not None:
            try:
                self._client.end_attempt(JOB, self._context.attempt, str(error))
            except TwoPhaseCommitError as again:
                self._world.note(self.process.name, "could not end the attempt:", again)
        self._world.after(self._world.pick(RESTART_MS), self._attempt, self._lane)
