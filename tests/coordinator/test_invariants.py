"""Random lives of one job: broken streams, declines, full disks, restarts of the coordinator, new attempts.

The subtasks are as simple as can be: they remember what the real link remembers, answer late or not at all, and lose
whatever is under way when their stream breaks. After every message the promises of the protocol are checked against
what is on the disk at that moment; at the end the faults stop, and the job must finish.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from coordinator.events import SessionId
from coordinator.ledger import Ledger
from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, TIMEOUT, FaultyStorage, Recorder, Scene, snapshot
from twopc.errors import Unavailable
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.job_events import JobEvent
from twopc.protocol.messages import (
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    FencedOff,
    Finish,
    ToCoordinator,
    ToSubtask,
    Trigger,
)
from twopc.rpc.link_memory import LinkMemory

PARALLELISM = 2
STEPS = 120
LIVES = 15


class Judge(Recorder):
    """Checks each message and event against the disk, at the moment when it goes out."""

    def __init__(self, disk: FaultyStorage, history: Judge | None) -> None:
        super().__init__()
        self._disk = disk
        self.triggered: set[int] = history.triggered if history else set()
        self.completed: set[int] = history.completed if history else set()
        self.aborted: set[int] = history.aborted if history else set()

    def send(self, session: SessionId, message: ToSubtask) -> None:
        ledger = Ledger(JOB, self._disk)
        match message:
            case Trigger(number):
                assert ledger.state.last_reserved >= number, "triggered before the id was durable"
                assert number in self.triggered or number > max(self.triggered, default=0), "ids must grow"
                self.triggered.add(number)
            case Complete(number):
                completed = ledger.state.find(number)
                assert completed is not None, "notified before the completion record was durable"
                snapshots = ledger.metadata(number).snapshots
                assert [each.subtask for each in snapshots] == list(range(PARALLELISM))
                assert all(each.state.path.startswith(f"chk-{number}/") for each in snapshots), "a stale snapshot"
                self.completed.add(number)
            case Abort(number, _):
                self.aborted.add(number)
            case Finish():
                assert ledger.state.ended is not None, "finished before the end was durable"
            case FencedOff():
                pass
        assert not self.aborted & self.completed, "one checkpoint was both aborted and completed"
        super().send(session, message)

    def publish(self, event: JobEvent) -> None:
        if event.kind == "confirmed":
            completed = Ledger(JOB, self._disk).state.find(event.checkpoint_id)
            assert completed is not None
            assert not completed.outstanding, "confirmed before the confirmations were durable"
        super().publish(event)


class Subtask:
    """One subtask of the current attempt, with a stream that may break."""

    def __init__(self, life: Life, index: int) -> None:
        self._life = life
        self._index = index
        self.memory = LinkMemory()
        self.outgoing: list[ToCoordinator] = []
        self.ended = False

    def attach(self) -> None:
        self._life.scene.attach(self._index, last=self.memory.last_checkpoint_id)
        self.outgoing = self.memory.repeat()

    def hear(self) -> None:
        for message in self._life.scene.heard(self._index):
            new = isinstance(message, Trigger) and message.checkpoint_id > self.memory.last_checkpoint_id
            self.memory.heard(message)
            match message:
                case Trigger(number) if new:
                    self._say(self._answer(number))
                case Complete(number):
                    self._say(Committed(number))
                case Finish() | FencedOff():
                    self.ended = True
                case _:
                    pass

    def _answer(self, number: CheckpointId) -> ToCoordinator:
        if self._life.faulty and self._life.random.random() < 0.1:
            return Decline(number, "no room")
        return Ack(number, snapshot(self._index, f"t{number}-{self._index}", checkpoint_id=number))

    def _say(self, message: ToCoordinator) -> None:
        self.memory.said(message)
        self.outgoing.append(message)

    def speak(self) -> None:
        outgoing, self.outgoing = self.outgoing, []
        self._life.scene.say(self._index, *outgoing)

    def lose_stream(self) -> None:
        self._life.scene.detach(self._index)
        self.attach()


class Life:
    """A job's life under one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.faulty = True
        self.disk = FaultyStorage()
        self.disk.is_full = lambda name, data: self.faulty and self.random.random() < 0.05
        self.scene = Scene(self.disk, replace(SETTINGS, tolerable_failures=1_000))
        self.judge: Judge | None = None
        self.restart_coordinator(attach=False)
        self.subtasks: list[Subtask] = []
        self.start_attempt()

    def restart_coordinator(self, *, attach: bool = True) -> None:
        self.scene.restart()
        self.judge = Judge(self.disk, self.judge)
        self.scene.use(self.judge)
        if attach:
            for subtask in self.subtasks:
                subtask.attach()

    def start_attempt(self) -> None:
        before: AttemptId = self.scene.attempt
        while self.scene.attempt == before:
            try:
                self.scene.start(PARALLELISM)
            except Unavailable:
                continue
        self.subtasks = [Subtask(self, index) for index in range(PARALLELISM)]
        for subtask in self.subtasks:
            subtask.attach()

    def step(self) -> None:
        subtask = self.random.choice(self.subtasks)
        actions = [subtask.hear, subtask.speak, self.pass_time]
        faults = [subtask.lose_stream, self.restart_coordinator, self.start_attempt]
        if self.faulty and self.random.random() < 0.1:
            self.random.choices(faults, weights=(6, 3, 1))[0]()
        else:
            self.random.choice(actions)()

    def pass_time(self) -> None:
        self.scene.wait(self.random.choice((1, INTERVAL, INTERVAL, TIMEOUT)))

    def settle(self) -> None:
        """Stop the faults, ask for the end, and let everyone talk."""
        self.faulty = False
        self.scene.stop()
        for _ in range(60):
            for subtask in self.subtasks:
                if not subtask.ended:
                    subtask.hear()
                    subtask.speak()
            self.scene.wait(INTERVAL)


@pytest.mark.parametrize("block", range(10))
def test_the_promises_hold_in_random_lives(block: int) -> None:
    for seed in range(block * LIVES, (block + 1) * LIVES):
        life = Life(seed)
        for _ in range(STEPS):
            life.step()
        life.settle()
        assert all(subtask.ended for subtask in life.subtasks), f"seed {seed}: the job must finish without faults"
        newest = Ledger(JOB, life.disk).state.newest
        assert newest is not None
        assert newest.record.kind == "final"
        assert not newest.outstanding


def test_random_lives_reach_what_they_are_meant_to_reach() -> None:
    told: set[str] = set()
    for seed in range(30):
        life = Life(seed)
        for _ in range(STEPS):
            life.step()
            assert life.judge is not None
            told |= {event.kind for event in life.judge.events}
    assert {"triggered", "declined", "aborted", "completed", "confirmed", "attempt-started", "detached"} <= told
