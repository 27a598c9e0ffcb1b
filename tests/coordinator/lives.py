"""Random lives of one job, from a seed: the subtasks, the streams, the disk and the coordinators all misbehave.

The subtasks decide with the production state and link memory, and are otherwise as simple as can be. What they say and
hear may be late, doubled or in another order; streams break; coordinators are killed, or go on beside their successor;
subtasks of earlier attempts go on as zombies. After the faults comes a calm phase in which the job must finish.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

from coordinator.events import Attached, Detached, MessageReceived, SessionId, TriggerCheckpoint
from coordinator.jobs import Jobs
from tests.coordinator.judge import Judge
from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, TIMEOUT, FaultyStorage, Scene, snapshot
from tests.snapshots import changed
from twopc.errors import ConfigurationError, Fenced, Unavailable
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Ack, Committed, Decline, ToCoordinator, ToSubtask
from twopc.protocol.subtask_state import CommitPending, End, PreCommitted, SubtaskState, TakeCheckpoint
from twopc.rpc.link_memory import LinkMemory

PARALLELISM = 2
STEPS = 120


class Subtask:
    """One subtask of one attempt. `committed` holds what it has committed, in order."""

    def __init__(self, life: Life, attempt: AttemptId, index: int) -> None:
        self._life = life
        self._attempt = attempt
        self._index = SubtaskIndex(index)
        self._state = SubtaskState()
        self._memory = LinkMemory()
        self._outgoing: list[ToCoordinator] = []
        self._said: list[ToCoordinator] = []
        self._to_report: list[CheckpointId] = []
        self._heard = 0
        self.committed: list[CheckpointId] = []
        self.ended = False
        self.attach()

    def attach(self) -> None:
        """Open a stream to whichever coordinator is the newest now."""
        self._jobs, self._outlet = self._life.jobs, self._life.judge
        self._session = self._life.new_session()
        self._heard = 0
        self._jobs.attach(
            JOB,
            Attached(
                session=self._session,
                attempt=self._attempt,
                subtask=self._index,
                last_checkpoint_id=self._memory.last_checkpoint_id,
                end_of_input=self._memory.end_of_input,
                pid=self._attempt * 100 + self._index,
                host="here",
            ),
        )
        self._outgoing = self._memory.repeat()

    def lose_stream(self) -> None:
        self._jobs.take(JOB, (Detached(self._session),))
        self.attach()

    def hear(self) -> None:
        """Take in what has come, now and then in another order."""
        messages = [message for to, message in self._outlet.sent if to == self._session][self._heard :]
        self._heard += len(messages)
        if self._life.happens(0.1):
            self._life.random.shuffle(messages)
        for message in messages:
            self._memory.note_received(message)
            self._on(message)

    def _on(self, message: ToSubtask) -> None:
        if self.ended:
            return
        action = self._state.on(message)
        match action:
            case TakeCheckpoint():
                self._take(action.trigger.checkpoint_id)
            case CommitPending():
                due = [entry.checkpoint_id for entry in action.due]
                assert due == sorted(due), "committed out of order"
                assert not self.committed or not due or self.committed[-1] < due[0], "committed twice, or out of order"
                self.committed += due
                self._to_report.append(action.proof.checkpoint_id)
            case End():
                self.ended = True
            case _:
                pass

    def _take(self, number: CheckpointId) -> None:
        committable = Committable(f"t{number}-{self._attempt}-{self._index}", number, self._index, {})
        self._state.pre_committed(PreCommitted(number, () if committable is None else (committable,), ()))
        if self._life.happens(0.1):
            self._say(Decline(number, "no room"))
            return
        stored = snapshot(self._index, checkpoint_id=number)
        self._say(Ack(number, changed(stored, committables=self._state.committables)))

    def _say(self, message: ToCoordinator) -> None:
        self._memory.note_sent(message)
        self._outgoing.append(message)
        self._said.append(message)

    def speak(self) -> None:
        """Send what there is to say, now and then some of it again, or in another order."""
        for number in self._to_report:
            self._state.committed(number)
            self._say(Committed(number))
        self._to_report.clear()
        outgoing, self._outgoing = self._outgoing, []
        if self._said and self._life.happens(0.1):
            outgoing += self._life.random.choices(self._said, k=2)
        if self._life.happens(0.1):
            self._life.random.shuffle(outgoing)
        self._jobs.take(JOB, tuple(MessageReceived(self._session, message) for message in outgoing))


class Life:
    """A job's life under one seed. `judge` and `jobs` are of the newest coordinator."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.faulty = True
        self.settings = replace(
            SETTINGS,
            max_concurrent=self.random.randint(1, 3),
            tolerable_failures=self.random.choice((0, 1, 3, 1_000)),
            retained=self.random.randint(1, 3),
            min_pause_ms=self.random.choice((0, 0, INTERVAL // 2)),
        )
        self.disk = FaultyStorage()
        self.disk.is_full = lambda name, data: self.happens(0.05)
        self.scene = Scene(self.disk, self.settings)
        self._rivals = self.random.random() < 0.3
        self._sessions = itertools.count(1)
        self._requests = itertools.count(1)
        self.judges: list[Judge] = []
        self._former: list[Jobs] = []
        self._zombies: list[Subtask] = []
        self.subtasks: list[Subtask] = []
        self.start_coordinator()
        self.start_attempt()

    def happens(self, chance: float) -> bool:
        return self.faulty and self.random.random() < chance

    def new_session(self) -> SessionId:
        return SessionId(next(self._sessions))

    @property
    def jobs(self) -> Jobs:
        return self.scene.jobs

    @property
    def judge(self) -> Judge:
        return self.judges[-1]

    def start_coordinator(self) -> None:
        """Kill the coordinator, or leave it beside the next one; the subtasks find the new one."""
        if self.judges and self._rivals:
            self._former.append(self.jobs)
        history = None if self._rivals or not self.judges else self.judge
        judge = Judge(self.disk, self.settings, history)
        self.judges.append(judge)
        self.scene.use(judge)
        judge.jobs = self.jobs
        for subtask in self.subtasks:
            subtask.attach()

    def start_attempt(self) -> None:
        before = self.scene.attempt
        while self.scene.attempt == before:
            try:
                self.scene.start(PARALLELISM)
            except (Unavailable, Fenced):
                continue
        assert self.judge.asked <= set(self.judge.answers), "a request was not answered when its attempt ended"
        self._zombies += self.subtasks
        self.subtasks = [Subtask(self, self.scene.attempt, index) for index in range(PARALLELISM)]

    def step(self) -> None:
        if self.happens(0.1):
            faults = (self.lose_stream, self.start_coordinator, self.start_attempt, self.play_former)
            self.random.choices(faults, weights=(6, 3, 1, 6))[0]()
        else:
            subtask = self.random.choice(self.subtasks)
            actions = (subtask.hear, subtask.speak, self.pass_time, self.ask)
            self.random.choices(actions, weights=(5, 5, 5, 1))[0]()
        self._replace_what_is_over()

    def lose_stream(self) -> None:
        self.random.choice(self.subtasks).lose_stream()

    def play_former(self) -> None:
        """Let a coordinator, and a subtask, that should be gone do something."""
        if self._former:
            self.random.choice(self._former).tick()
        if self._zombies:
            zombie = self.random.choice(self._zombies)
            self.random.choice((zombie.hear, zombie.speak, zombie.lose_stream))()

    def ask(self) -> None:
        kind = self.random.choice((CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT))
        request_id = f"r{next(self._requests)}"
        for _ in range(self.random.choice((1, 1, 2))):
            try:
                self.jobs.request(JOB, TriggerCheckpoint(kind, request_id, request_id))
            except (ConfigurationError, Fenced):
                return
            self.judge.asked.add(request_id)

    def pass_time(self) -> None:
        self.scene.wait(self.random.choice((1, INTERVAL // 2, INTERVAL, INTERVAL, TIMEOUT)))

    def _replace_what_is_over(self) -> None:
        """As a driver does: a failed attempt is followed by the next, a fenced coordinator by another."""
        phase = self.jobs.describe(JOB).phase
        if phase == "fenced":
            self.start_coordinator()
        elif phase in ("failed", "ended"):
            self.start_attempt()

    def settle(self) -> None:
        """Stop the faults, ask for the end, and let everyone talk."""
        self.faulty = False
        self._former, self._zombies = [], []
        self.start_coordinator()
        self._replace_what_is_over()
        for _ in range(3):
            self.ask()
        self.scene.stop()
        for _ in range(60):
            for subtask in self.subtasks:
                if not subtask.ended:
                    subtask.hear()
                    subtask.speak()
            self.scene.wait(INTERVAL)
