"""The streams between subtasks and coordinators: in order, late, breaking at any message, and dialled again.

What was under way when a stream broke may still arrive, up to some message and after the next stream has been opened;
what comes back on the broken stream is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from coordinator.events import Attached, Detached, MessageReceived, SessionId
from coordinator.jobs import Jobs
from tests.simulation.process import Lane
from tests.simulation.world import World
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.protocol.messages import Ack, FencedOff, Finish, Progress, ToCoordinator, ToSubtask
from twopc.rpc.link_memory import LinkMemory

REDIAL_MS = (50, 100, 400)
REPEAT_MS = (1, 50, 400)
"""After how long a message comes a second time, as a link is allowed to let it."""

STALL_MS = (300, 2_500, 9_000)
"""How long one direction of a stream may stand still, while the other goes on."""

CALM_DELAY_MS = 5
"""The longest delay in the calm phase: a slow network would have more checkpoints taken there, and nothing else."""

HEARTBEAT_TIMEOUT_MS = 4_000
"""How long a subtask may be silent."""

PROGRESS_SHARE = 0.1
"""How much of what decides nothing is sent: the rest would only cost time."""


def _short(message: ToCoordinator | ToSubtask) -> object:
    if not isinstance(message, Ack):
        return message
    positions = ", ".join(map(str, message.snapshot.positions))
    names = ", ".join(item.name for item in message.snapshot.committables)
    return f"Ack({message.checkpoint_id}: {positions or 'no positions'}; {names or 'nothing pending'})"


class Peer(Protocol):
    """A coordinator, as streams see it."""

    lane: Lane

    def call(self, do: Callable[[Jobs], None], stream: Stream) -> None: ...

    def open(self, stream: Stream) -> SessionId: ...


class Stream:
    """One stream: two queues, each in order."""

    def __init__(self, world: World, link: SimLink, peer: Peer) -> None:
        self._world = world
        self._link = link
        self._peer = peer
        self._up: deque[Attached | MessageReceived | Detached] = deque()
        self._down: deque[ToSubtask | None] = deque()
        self._next_up = self._next_down = 0
        self._awaited = 0
        self._hung_up = False
        self.session = peer.open(self)

    @property
    def attempt(self) -> AttemptId:
        """That of its subtask."""
        return self._link.attempt

    def say(self, event: Attached | MessageReceived) -> None:
        self._up.append(event)
        if isinstance(event, MessageReceived) and self._world.strikes("said twice", self._world.faults.duplicates):
            self._up.append(event)
        self._send_up()

    def deliver(self, message: ToSubtask | None) -> None:
        """The coordinator sends; None ends the stream."""
        if not self._hung_up:
            self._down.append(message)
            self._next_down = self._schedule(self._next_down, self._arrive_down, self._link.lane)

    def hang_up(self, *, whole: bool = False) -> None:
        """The subtask's end is gone: some of what it said is lost, and the coordinator learns of it in its time."""
        if self._hung_up:
            return
        self._hung_up = True
        lost = 0 if whole else self._world.strikes("under way lost", 0.7) % (len(self._up) + 1)
        for _ in range(lost):
            self._up.pop()
        self._up.append(Detached(self.session))
        self._send_up()

    def cut(self) -> None:
        """The coordinator's end is gone: the subtask notices after a while."""
        delay = self._world.pick(REDIAL_MS)
        self._world.after(delay, lambda: self._link.broken(self), self._link.lane)

    def _send_up(self) -> None:
        self._awaited += 1
        self._next_up = self._schedule(self._next_up, self._arrive_up, self._peer.lane)

    def _schedule(self, not_before: int, arrive: Callable[[], None], lane: Lane) -> int:
        world = self._world
        most_ms = world.faults.network_delay_ms
        at = max(not_before, world.now_ms + world.delay(min(most_ms, CALM_DELAY_MS) if world.calm else most_ms))
        stall = world.strikes("stalls", world.faults.stalls)
        if stall:
            at += world.of(STALL_MS, stall)
        world.after(at - world.now_ms, arrive, lane)
        return at

    def _arrive_up(self) -> None:
        """Hand over what has arrived, together with what came right behind it; at the end, all that was said twice."""
        self._awaited -= 1
        if not self._up:
            return
        first = self._up.popleft()
        if isinstance(first, Attached):
            self._peer.call(lambda jobs: jobs.attach(self._link.job, first), self)
            return
        events = [first]
        while self._up and self._world.rng.random() < 0.3 and not isinstance(self._up[0], Attached):
            events.append(self._up.popleft())  # type: ignore[arg-type]
        if self._hung_up and not self._awaited:
            events.extend(self._up)  # type: ignore[arg-type]
            self._up.clear()
        self._peer.call(lambda jobs: jobs.take(self._link.job, tuple(events)), self)

    def _arrive_down(self) -> None:
        if self._hung_up or not self._down:
            return
        message = self._down.popleft()
        if message is None or self._world.strikes("breaks before hearing", self._world.faults.stream_breaks):
            self._link.broken(self)
        else:
            self._link.heard(message)


class SimLink:
    """As `twopc.rpc.subtask_link.SubtaskLink`, with its memory of what must be said again."""

    def __init__(
        self,
        world: World,
        lane: Lane,
        job: str,
        attempt: AttemptId,
        subtask: SubtaskIndex,
        pid: int,
        dial: Callable[[], Peer | None],
        on_message: Callable[[], None],
    ) -> None:
        self.lane = lane
        self.job = job
        self._world = world
        self.attempt = attempt
        self._subtask = subtask
        self._pid = pid
        self._dial = dial
        self._on_message = on_message
        self._memory = LinkMemory()
        self._stream: Stream | None = None
        self._inbox: deque[ToSubtask] = deque()
        self._closed = False
        self.redial()

    def send(self, message: ToCoordinator) -> None:
        if isinstance(message, Progress) and self._world.rng.random() > PROGRESS_SHARE:
            return
        self._memory.note_sent(message)
        if self._world.keeps_trace:
            self._world.note(self.lane.process.name, "says", _short(message))
        stream = self._stream
        if stream is None:
            return
        stream.say(MessageReceived(stream.session, message))
        if self._world.strikes("breaks after saying", self._world.faults.stream_breaks):
            self.broken(stream)

    def receive(self, timeout: float) -> list[ToSubtask]:
        messages = list(self._inbox)
        self._inbox.clear()
        return messages

    def welcomed(self) -> bool:
        """Whether the coordinator has accepted this subtask; raise Fenced if it has turned it away."""
        return self._memory.may_open()

    def close(self) -> None:
        """Send what is waiting and hang up; dials no more."""
        self._closed = True
        if self._stream is not None:
            self._stream.hang_up(whole=True)
            self._stream = None

    @property
    def connected(self) -> bool:
        return self._stream is not None

    def heard(self, message: ToSubtask) -> None:
        self._memory.note_received(message)
        if self._world.keeps_trace:
            self._world.note(self.lane.process.name, "hears", _short(message))
        self._put(message)
        twice = self._world.strikes("heard twice", self._world.faults.duplicates)
        if twice:
            self._world.after(self._world.of(REPEAT_MS, twice), lambda: self._put(message), self.lane)
        if isinstance(message, Finish | FencedOff):
            self._closed = True

    def _put(self, message: ToSubtask) -> None:
        self._inbox.append(message)
        self._on_message()

    def broken(self, stream: Stream) -> None:
        """This stream is no more; another is opened after a while."""
        if stream is not self._stream:
            return
        self._stream = None
        self._world.note(self.lane.process.name, "stream breaks")
        stream.hang_up()
        self._world.after(self._world.pick(REDIAL_MS), self.redial, self.lane)

    def lost(self) -> None:
        """The process is dead: its end of the stream goes with it."""
        if self._stream is not None:
            self._stream.hang_up()

    def cut_off(self) -> None:
        """The other end sees the stream end, and no other is opened before the process wakes."""
        if self._stream is not None:
            self.broken(self._stream)

    def redial(self) -> None:
        if self._closed or self._stream is not None:
            return
        peer = self._dial()
        if peer is None:
            self._world.after(self._world.pick(REDIAL_MS), self.redial, self.lane)
            return
        stream = self._stream = Stream(self._world, self, peer)
        stream.say(
            Attached(
                session=stream.session,
                attempt=self.attempt,
                subtask=self._subtask,
                last_checkpoint_id=self._memory.last_checkpoint_id,
                end_of_input=self._memory.end_of_input,
                pid=self._pid,
                host="simulated",
                heartbeat_timeout_ms=HEARTBEAT_TIMEOUT_MS,
            )
        )
        for message in self._memory.repeat():
            stream.say(MessageReceived(stream.session, message))
