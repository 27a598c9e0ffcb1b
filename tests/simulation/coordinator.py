"""A coordinator process: the production `Jobs` on the shared checkpoint folder, behind streams and calls that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from coordinator.events import (
    ConfirmCommittables,
    EndAttempt,
    PlanStarts,
    SessionId,
    SettleLoss,
    StartAttempt,
    StopJob,
)
from coordinator.jobs import Jobs
from tests.simulation.clocks import SimClock
from tests.simulation.disk import CheckpointFolder
from tests.simulation.faults import Faults
from tests.simulation.network import Stream
from tests.simulation.process import Crashed, Lane
from tests.simulation.world import World
from twopc.config import RunSettings
from twopc.errors import CheckpointCorrupted, ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.protocol.attempts import CheckpointSettings, GlobalCommit, StartedAttempt, Traces
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_events import JobEvent, JobEventKind
from twopc.protocol.messages import FencedOff, ToSubtask
from twopc.protocol.planned_starts import StartsPlanned

TOLD = (
    JobEventKind.ATTEMPT_STARTED,
    JobEventKind.TRIGGERED,
    JobEventKind.ABORTED,
    JobEventKind.FAILED,
    JobEventKind.FENCED,
)

DEADLINE_SECONDS = 0.2
CALM_DEADLINE_SECONDS = 2.0
"""How long who calls waits for an answer; who asks a paused coordinator often in the calm phase finds nothing new."""

T = TypeVar("T")


def settings_of(faults: Faults) -> CheckpointSettings:
    """The settings of every attempt of a run."""
    return CheckpointSettings(
        interval_ms=faults.interval_ms,
        timeout_ms=2_000,
        min_pause_ms=faults.min_pause_ms,
        max_concurrent=faults.max_concurrent,
        tolerable_failures=faults.tolerable_failures,
        retained=faults.retained,
    )


class SimCoordinator:
    """One process from start to death; its ledger outlives it."""

    def __init__(self, world: World, number: int, folder: CheckpointFolder, tell: Callable[[JobEvent], None]) -> None:
        self.process = world.process(f"coordinator-{number}", "coordinator")
        self.lane = Lane(self.process, "loop")
        self._world = world
        self._clock = SimClock(world, self.process)
        self._tell = tell
        self._streams: dict[SessionId, Stream] = {}
        self._sessions = number * 10_000
        self._tick_at: int | None = None
        folder.opened()
        self.jobs = Jobs(lambda job: folder, self._clock, self)
        world.note(self.process.name, "starts")

    def open(self, stream: Stream) -> SessionId:
        """Give a new stream its session."""
        self._sessions += 1
        session = SessionId(self._sessions)
        self._streams[session] = stream
        return session

    def call(self, do: Callable[[Jobs], None], stream: Stream) -> None:
        """Let a stream hand something over; runs in the coordinator's lane already."""
        try:
            do(self.jobs)
        except (ConfigurationError, CheckpointCorrupted) as error:
            stream.deliver(FencedOff(f"refused: {error}"))
        except TwoPhaseCommitError:
            stream.deliver(None)
        self._arm()

    def ask(self, do: Callable[[Jobs], T]) -> T:
        """Answer a call from another process; raise Unavailable where it gets no answer."""
        world = self._world
        if not self.process.alive or self.lane.busy or self.process.paused_until > world.now_ms:
            world.sleep(CALM_DEADLINE_SECONDS if world.calm else DEADLINE_SECONDS)
            raise Unavailable("simulated: the coordinator does not answer")
        if world.strikes("call lost", world.faults.stream_breaks / 2):
            raise Unavailable("simulated: the call was lost")
        try:
            answer = world.run_as(self.lane, lambda: self._answer(do))
        except Crashed:
            if world.lane is not None and not world.lane.process.alive:
                raise
            raise Unavailable("simulated: the coordinator died during the call") from None
        if world.strikes("answer lost", world.faults.stream_breaks / 2):
            raise Unavailable("simulated: the answer was lost")
        return answer

    def _answer(self, do: Callable[[Jobs], T]) -> T:
        try:
            return do(self.jobs)
        finally:
            if self.process.alive:
                self._arm()

    def died(self) -> None:
        for stream in self._streams.values():
            stream.cut()

    # The outlet of the jobs.

    def send(self, session: SessionId, message: ToSubtask) -> None:
        stream = self._streams.get(session)
        if stream is not None:
            stream.deliver(message)
            if isinstance(message, FencedOff):
                stream.deliver(None)

    def hang_up(self, session: SessionId) -> None:
        stream = self._streams.get(session)
        if stream is not None:
            stream.deliver(None)

    def publish(self, event: JobEvent) -> None:
        self._tell(event)
        if self._world.keeps_trace and event.kind in TOLD:
            self._world.note(
                self.process.name, event.kind, event.checkpoint_id or f"attempt {event.attempt}", event.message
            )

    def _arm(self) -> int | None:
        """Have a tick when the jobs' deadline, a time of this process, has come; return it."""
        deadline = self.jobs.deadline()
        if deadline is None:
            return None
        delay = max(0, deadline - self._clock.now().monotonic_ms)
        at = self._world.now_ms + delay
        if self._tick_at is None or at < self._tick_at or self._tick_at <= self._world.now_ms:
            self._tick_at = at
            self._world.after(delay, self._tick, self.lane)
        return deadline

    def _tick(self) -> None:
        self._tick_at = None
        began = self._clock.now().monotonic_ms
        self.jobs.tick()
        deadline = self._arm()
        if deadline is not None and deadline <= began:
            self._world.violated("a coordinator would spin", f"{self.process.name} is due at {deadline} after its tick")


class SimJobClient:
    """As `twopc.rpc.job_client.JobClient`, to whichever coordinator has the address at the time."""

    def __init__(self, find: Callable[[], SimCoordinator | None], checkpoints: CheckpointSettings) -> None:
        self._find = find
        self._checkpoints = checkpoints

    def start_attempt(
        self,
        job: str,
        settings: RunSettings,
        restore_from: str,
        traces: Traces,
        *,
        restart: bool,
        restart_of: AttemptId,
    ) -> StartedAttempt:
        request = StartAttempt(
            settings.parallelism,
            self._checkpoints,
            restore_from,
            traces,
            restart=restart,
            restart_of=restart_of,
        )
        return self._ask(lambda jobs: jobs.start_attempt(job, request))

    def confirm(self, job: str, attempt: AttemptId, checkpoint_id: CheckpointId, names: Sequence[str]) -> None:
        self._ask(lambda jobs: jobs.request(job, ConfirmCommittables(attempt, checkpoint_id, tuple(names))))

    def next_global_commit(self, job: str, attempt: AttemptId) -> GlobalCommit | None:
        return self._ask(lambda jobs: jobs.next_global_commit(job, attempt))

    def settle_loss(
        self,
        job: str,
        attempt: AttemptId,
        checkpoint_id: CheckpointId,
        names: Sequence[str],
        bases: Mapping[SubtaskIndex, CheckpointId],
        message: str,
    ) -> None:
        decided = SettleLoss(attempt, checkpoint_id, tuple(names), tuple(sorted(bases.items())), message)
        self._ask(lambda jobs: jobs.request(job, decided))

    def plan_starts(self, job: str, planned: StartsPlanned) -> None:
        self._ask(lambda jobs: jobs.request(job, PlanStarts(planned)))

    def stop(self, job: str, attempt: AttemptId) -> None:
        self._ask(lambda jobs: jobs.request(job, StopJob(attempt)))

    def end_attempt(self, job: str, attempt: AttemptId, reason: str) -> None:
        self._ask(lambda jobs: jobs.request(job, EndAttempt(attempt, reason)))

    def status(self, job: str) -> tuple[JobEvent, ...]:
        return self._ask(lambda jobs: jobs.status(job))

    def _ask(self, do: Callable[[Jobs], T]) -> T:
        coordinator = self._find()
        if coordinator is None:
            raise Unavailable("simulated: no coordinator listens")
        return coordinator.ask(do)
