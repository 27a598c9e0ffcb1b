"""Checks each message and event of a coordinator against the disk, at the moment when it goes out."""

from __future__ import annotations

from collections import Counter

from coordinator.events import SessionId
from coordinator.jobs import Jobs
from coordinator.ledger import Ledger
from tests.coordinator.kit import JOB, FaultyStorage, Recorder
from twopc import events
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.messages import Abort, Complete, FencedOff, Finish, ToSubtask, Trigger, Welcome

EXCLUSIVE = (CheckpointKind.SAVEPOINT, CheckpointKind.FINAL)


class Judge(Recorder):
    """The outlet of one coordinator. `history` is the judge of the one that was killed before this one started."""

    def __init__(self, disk: FaultyStorage, settings: CheckpointSettings, history: Judge | None) -> None:
        super().__init__()
        self.jobs: Jobs | None = None
        self.asked: set[str] = set()
        self.answers: Counter[str] = Counter()
        self._disk = disk
        self._settings = settings
        self._ledger: tuple[frozenset[str], Ledger] | None = None
        self._in_flight: dict[int, CheckpointKind] = {}
        self.triggered: set[int] = history.triggered if history else set()
        self.completed: set[int] = history.completed if history else set()
        self.aborted: set[int] = history.aborted if history else set()
        self.savepoints: set[int] = history.savepoints if history else set()

    def _durable(self) -> Ledger:
        """What is on the disk now, read again when there are other files: none of them ever changes."""
        names = frozenset(self._disk.data)
        if self._ledger is None or self._ledger[0] != names:
            self._ledger = names, Ledger(JOB, self._disk)
        return self._ledger[1]

    def send(self, session: SessionId, message: ToSubtask) -> None:
        ledger = self._durable()
        match message:
            case Trigger(number):
                assert ledger.state.last_reserved >= number, "triggered before the id was durable"
                self.triggered.add(number)
            case Complete(number):
                completed = ledger.state.find(number)
                assert completed is not None, "notified before the completion record was durable"
                snapshots = ledger.metadata(number).snapshots
                assert [each.subtask for each in snapshots] == list(range(len(snapshots)))
                assert all(each.state.path.startswith(f"chk-{number}/") for each in snapshots), "a stale snapshot"
                self.completed.add(number)
            case Abort(number, _):
                self.aborted.add(number)
            case Finish():
                assert ledger.state.ended is not None, "finished before the end was durable"
            case FencedOff() | Welcome():
                pass
        assert not self.aborted & self.completed, "one checkpoint was both aborted and completed"
        super().send(session, message)

    def publish(self, event: events.CoordinatorEvent) -> None:
        match event:
            case events.AttemptStarted():
                self._in_flight.clear()
            case events.CheckpointTriggered():
                self._check_trigger(event)
                self._in_flight[event.checkpoint_id] = event.kind
            case events.CheckpointCompleted() | events.CheckpointAborted():
                self._ended(event)
            case events.CheckpointConfirmed():
                completed = self._durable().state.find(event.checkpoint_id)
                assert completed is not None
                assert not completed.outstanding, "confirmed before the confirmations were durable"
        super().publish(event)

    def _check_trigger(self, event: events.CheckpointTriggered) -> None:
        assert event.checkpoint_id > max(self.triggered, default=0), "ids must grow"
        assert len(self._in_flight) < self._settings.concurrent, "too many in flight"
        assert not any(kind in EXCLUSIVE for kind in self._in_flight.values()), "triggered beside it"
        assert self.jobs is not None
        waiting = {each.kind for each in self.jobs.describe(JOB).queued}
        if event.kind is not CheckpointKind.SAVEPOINT:
            assert CheckpointKind.SAVEPOINT not in waiting, "a savepoint goes first"
        if event.kind is CheckpointKind.PERIODIC:
            assert not waiting, "what people ask for goes before the periodic one"

    def _ended(self, event: events.CheckpointCompleted | events.CheckpointAborted) -> None:
        if event.checkpoint_id:
            self._in_flight.pop(event.checkpoint_id, None)
        if event.request_id:
            self.answers[event.request_id] += 1
        if isinstance(event, events.CheckpointCompleted) and event.kind is CheckpointKind.SAVEPOINT:
            self.savepoints.add(event.checkpoint_id)

    def check_what_is_kept(self) -> None:
        """Every savepoint is there, and every checkpoint that the ledger names can be read."""
        ledger = Ledger(JOB, self._disk)
        kept = {each.checkpoint_id for each in ledger.state.completed}
        assert self.savepoints <= kept, "a savepoint was forgotten"
        for checkpoint_id in kept:
            ledger.metadata(checkpoint_id)
