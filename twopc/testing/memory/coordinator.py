"""The coordinator in the thread of a test: production's `Jobs`, reached without a wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from coordinator.events import Attached, MessageReceived, SessionId
from coordinator.jobs import Jobs
from coordinator.ledger import Ledger
from twopc import events
from twopc.clock import Clock
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, SubtaskIndex
from twopc.protocol.messages import Ack, ToCoordinator, ToSubtask, Trigger
from twopc.protocol.requests import Request, TriggerCheckpoint
from twopc.storage.memory import MemoryStore

A = TypeVar("A")


class DirectLink:
    """A link that loses nothing: what a subtask says stays in it until `deliver` hands it over."""

    def __init__(self, take: Callable[[MessageReceived], None], session: SessionId) -> None:
        self._take = take
        self._session = session
        self._outbox: deque[ToCoordinator] = deque()
        self._inbox: deque[ToSubtask] = deque()
        self.times_told: tuple[NumberTimes, ...] = ()
        """Those that the subtask told with its latest checkpoint."""
        self.times_brought: tuple[FollowedTime, ...] = ()
        """Those that the latest trigger brought."""

    def send(self, message: ToCoordinator) -> None:
        if isinstance(message, Ack):
            self.times_told = message.times
        self._outbox.append(message)

    def receive(self, timeout: float) -> list[ToSubtask]:
        messages = list(self._inbox)
        self._inbox.clear()
        return messages

    def reading_ends(self) -> bool:
        """Nothing has come: the subtask is being put together."""
        return False

    def await_welcome(self, timeout: float) -> None:
        """It has been attached."""

    def close(self) -> None:
        """There is no connection."""

    def hear(self, message: ToSubtask) -> None:
        """The coordinator sends this."""
        if isinstance(message, Trigger):
            self.times_brought = message.times
        self._inbox.append(message)

    def deliver(self) -> None:
        """Hand over all that was said."""
        while self._outbox:
            self._take(MessageReceived(self._session, self._outbox.popleft()))


class DirectCoordinator:
    """Answers a driver, and lets subtasks in; `store` outlives it."""

    def __init__(self, store: MemoryStore, clock: Clock, publish: Callable[[events.CoordinatorEvent], None]) -> None:
        self.publish = publish
        self._jobs = Jobs(store.within, clock, self)
        self._links: dict[SessionId, DirectLink] = {}
        self._sessions = count(1)

    def attach(self, job: str, attempt: AttemptId, subtask: SubtaskIndex) -> DirectLink:
        """Open a subtask's link."""
        session = SessionId(next(self._sessions))
        link = self._links[session] = DirectLink(lambda message: self._jobs.take(job, (message,)), session)
        self._jobs.attach(job, Attached(session, attempt, subtask, NO_CHECKPOINT, end_of_input=False, pid=0, host=""))
        return link

    def trigger(self, job: str, request_id: str) -> None:
        """Ask for a checkpoint."""
        self._jobs.request(job, TriggerCheckpoint(CheckpointKind.MANUAL, "", request_id))

    def tick(self) -> None:
        """Do what is due by now."""
        self._jobs.tick()

    def ask(self, job: str, request: Request[A]) -> A:
        """Answer a driver."""
        return self._jobs.answer(job, request)

    # Where the decisions of the jobs go.

    def send(self, session: SessionId, message: ToSubtask) -> None:
        self._links[session].hear(message)

    def hang_up(self, session: SessionId) -> None:
        """A subtask that is told to end ends: nothing has to be cut."""


def newest_checkpoint(job: str, store: MemoryStore) -> CheckpointMetadata | None:
    """Return the newest completed checkpoint of a job, None if there is none."""
    ledger = Ledger(job, store.within(job))
    newest = ledger.state.newest
    return None if newest is None else ledger.metadata(newest.checkpoint_id)
