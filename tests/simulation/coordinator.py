"""A coordinator process: the production `Jobs` on the shared checkpoint folder, behind streams and calls that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from coordinator.events import SessionId
from coordinator.jobs import Jobs
from tests.simulation.clocks import SimClock
from tests.simulation.coordinator_judge import CoordinatorJudge
from tests.simulation.disk import CheckpointFolder
from tests.simulation.job import JOB
from tests.simulation.network import Stream
from tests.simulation.process import Crashed, Lane
from tests.simulation.world import World
from twopc import events
from twopc.errors import CheckpointCorrupted, ConfigurationError, Fenced, TwoPhaseCommitError, Unavailable
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.messages import FencedOff, ToSubtask
from twopc.protocol.requests import Request

DEADLINE_SECONDS = 0.2
CALM_DEADLINE_SECONDS = 2.0
"""How long who calls waits for an answer; who asks a paused coordinator often in the calm phase finds nothing new."""

A = TypeVar("A")
T = TypeVar("T")


class SimCoordinator:
    """One process from start to death; its ledger outlives it."""

    def __init__(
        self, world: World, number: int, folder: CheckpointFolder, tell: Callable[[events.CoordinatorEvent], None]
    ) -> None:
        self.process = world.process(f"coordinator-{number}", "coordinator")
        self.lane = Lane(self.process, "loop")
        self._world = world
        self._clock = SimClock(world, self.process)
        self._tell = tell
        self._streams: dict[SessionId, Stream] = {}
        self._sessions = number * 10_000
        self._tick_at: int | None = None
        self._folder = folder
        folder.opened()
        self._judge = CoordinatorJudge(world, folder, self._queued)
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
        except Fenced:
            self._judge_fencing()
            raise
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
            self._judge.sent(stream.attempt, message)
            stream.deliver(message)
            if isinstance(message, FencedOff):
                stream.deliver(None)

    def hang_up(self, session: SessionId) -> None:
        stream = self._streams.get(session)
        if stream is not None:
            stream.deliver(None)

    def publish(self, event: events.CoordinatorEvent) -> None:
        if isinstance(event, events.AttemptFenced):
            self._judge_fencing()
        self._judge.told(event)
        self._tell(event)
        if not self._world.keeps_trace:
            return
        match event:
            case events.AttemptStarted():
                self._world.note(self.process.name, event.name, event.restored or f"attempt {event.attempt}")
            case events.CheckpointTriggered():
                self._world.note(self.process.name, event.name, event.checkpoint_id)
            case events.CheckpointAborted():
                self._world.note(self.process.name, event.name, event.checkpoint_id, event.message)
            case events.AttemptFailed() | events.AttemptFenced():
                self._world.note(self.process.name, event.name, f"attempt {event.attempt}", event.message)
            case _:
                pass

    def _queued(self) -> list[CheckpointKind]:
        return [request.kind for request in self.jobs.describe(JOB).queued]

    def _judge_fencing(self) -> None:
        """Nobody loses to itself, however many answers were lost."""
        if self._folder.is_own_entry_in_the_way:
            self._world.violated("a coordinator was fenced by an entry of its own", self.process.name)

    def _arm(self) -> None:
        """Have a tick when the jobs' deadline, a time of this process, has come."""
        deadline = self.jobs.deadline()
        if deadline is None:
            return
        delay = max(0, deadline - self._clock.now().monotonic_ms)
        at = self._world.now_ms + delay
        if self._tick_at is None or at < self._tick_at or self._tick_at <= self._world.now_ms:
            self._tick_at = at
            self._world.after(delay, self._tick, self.lane)

    def _tick(self) -> None:
        self._tick_at = None
        began = self._clock.now().monotonic_ms
        self.jobs.tick()
        deadline = self.jobs.deadline()
        if deadline is not None and deadline <= began:
            self._world.violated("a coordinator would spin", f"{self.process.name} is due at {deadline} after its tick")
            return
        self._arm()


class SimJobClient:
    """Asks whichever coordinator has the address at the time, over calls that fail."""

    def __init__(self, find: Callable[[], SimCoordinator | None]) -> None:
        self._find = find

    def status(self, job: str) -> tuple[events.CoordinatorEvent, ...]:
        return self._do(lambda jobs: jobs.status(job))

    def ask(self, job: str, request: Request[A]) -> A:
        return self._do(lambda jobs: jobs.answer(job, request))

    def _do(self, do: Callable[[Jobs], T]) -> T:
        coordinator = self._find()
        if coordinator is None:
            raise Unavailable("simulated: no coordinator listens")
        return coordinator.ask(do)
