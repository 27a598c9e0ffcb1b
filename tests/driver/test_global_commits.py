"""When the driver commits globally: before it reads, one turn at a time, and again while it may start again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.driver.test_machine import LATER, Coordinator, EmptySink, Played
from twopc import events
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.actions import AbortLingering, CommitGlobally, StartAttempt, Submit
from twopc.driver.machine import Tick
from twopc.errors import GlobalCommitFailed, TransactionLost
from twopc.protocol.attempts import GlobalCommit
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.requests import ConfirmCommittables, Request, SettleLoss
from twopc.sink import GlobalCommitter, Outcome, Settled


class TableSink(EmptySink, GlobalCommitter):
    """Its global committer commits, or meets an error."""

    def __init__(self, meets: Exception | None = None) -> None:
        self.committed: list[int] = []
        self._meets = meets

    def open_global_committer(self, context: JobContext) -> GlobalCommitter:
        return self

    def commit(self, checkpoint_id: CheckpointId, committables: Sequence[Committable]) -> None:
        self.committed.append(checkpoint_id)
        if self._meets is not None:
            raise self._meets

    def close(self) -> None:
        """It is committer and global committer."""


class Outstanding(Coordinator):
    """One that has a global commit outstanding until it is confirmed."""

    due: Sequence[GlobalCommit] = (
        GlobalCommit(CheckpointId(7), {"sink-1": (Committable("t", CheckpointId(7), SubtaskIndex(0), {}),)}),
    )

    def confirm(self, request: ConfirmCommittables) -> None:
        self.due = [each for each in self.due if each.checkpoint_id != request.checkpoint_id or not request.names]

    def next_global_commit(self) -> GlobalCommit | None:
        return next(iter(self.due), None)


def test_a_recovery_waits_for_the_global_commit_that_an_attempt_before_it_has_under_way() -> None:
    played = Played(coordinator=Coordinator(LATER), sink=TableSink(), holds=CommitGlobally)
    played.answer(CommitGlobally, None).attaches().hears(events.CheckpointCompleted, checkpoint_id=CheckpointId(8))
    assert len(played.actions(CommitGlobally)) == 2, "that of the recovery, and one beside the subtasks"
    played.hears(events.AttemptFailed, message="gone", restartable=True).happens(Tick(), 60.0)
    assert len(played.actions(StartAttempt)) == 2
    assert len(played.actions(CommitGlobally)) == 2
    played.answer(CommitGlobally, None)
    assert len(played.actions(CommitGlobally)) == 3


def test_what_is_outstanding_is_committed_globally_by_the_next_run_before_it_reads() -> None:
    sink = TableSink()
    played = Played(coordinator=Outstanding(LATER), sink=sink)
    assert sink.committed == [7]
    assert len(played.actions(Submit)) == 1


def test_a_global_commit_that_fails_is_tried_again_as_the_restart_strategy_says_and_then_named() -> None:
    sink, settings = TableSink(OSError("disk full")), RunSettings(restart_attempts=2, restart_strategy="fixed-delay")
    played = Played(sink=sink, settings=settings).attaches()
    played._edge.coordinator = Outstanding(LATER)
    played.hears(events.CheckpointCompleted, checkpoint_id=CheckpointId(7))
    for later in range(1, 5):
        played.happens(Tick(), 100.0 * later)
    assert isinstance(played.error, GlobalCommitFailed)
    assert "job 'flights': the global commit of checkpoint 7 by sink 'sink-1' failed" in str(played.error)
    assert "OSError: disk full" in str(played.error)
    assert len(sink.committed) >= 3, "one, and two restarts"


class LossyTable(TableSink):
    """The file of transaction "gone" is not there any more, as the committer finds where `finds` says so."""

    def __init__(self, finds: bool = True) -> None:
        super().__init__()
        self._finds = finds

    def commit(self, checkpoint_id: CheckpointId, committables: Sequence[Committable]) -> None:
        if any(item.name == "gone" for item in committables):
            raise TransactionLost("file gone is missing")
        super().commit(checkpoint_id, committables)

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return [
            Settled(item, Outcome.LOST if item.name == "gone" and self._finds else Outcome.ALREADY_COMMITTED, "no file")
            for item in committables
        ]


class LossyCoordinator(Outstanding):
    """Has a checkpoint outstanding before the latest; remembers what was given up."""

    due: Sequence[GlobalCommit] = (
        GlobalCommit.of(
            CheckpointId(5),
            [Committable(name, CheckpointId(5), SubtaskIndex(0), {}, "sink-1") for name in ("gone", "whole")],
        ),
        *Outstanding.due,
    )
    given_up: tuple[str, ...] = ()

    def ask(self, job: str, request: Request[Any]) -> Any:
        if not isinstance(request, SettleLoss):
            return super().ask(job, request)
        assert (request.checkpoint_id, request.bases) == (5, ())
        self.given_up += request.names
        left = [item for item in self.due[0].committables if item.name not in request.names]
        self.due = [GlobalCommit.of(request.checkpoint_id, left), *self.due[1:]]
        return None


def test_a_loss_in_an_older_checkpoint_names_what_is_lost_and_how_to_go_on() -> None:
    played = Played(coordinator=LossyCoordinator(LATER), sink=LossyTable())
    assert isinstance(played.error, TransactionLost)
    assert "checkpoint 5" in str(played.error)
    assert str(played.error).endswith("--accept-loss gone")
    assert not played.actions(AbortLingering), "no evidence is destroyed"


def test_a_loss_in_an_older_checkpoint_that_a_person_accepts_is_settled_and_all_else_is_committed() -> None:
    coordinator, sink = LossyCoordinator(LATER), LossyTable()
    played = Played(coordinator=coordinator, sink=sink, settings=RunSettings(accept_loss=("gone",)))
    assert coordinator.given_up == ("gone",)
    assert sink.committed == [5, 7]
    assert len(played.actions(Submit)) == 1


def test_what_only_the_commit_calls_lost_is_not_given_up() -> None:
    coordinator = LossyCoordinator(LATER)
    played = Played(coordinator=coordinator, sink=LossyTable(finds=False), settings=RunSettings(accept_loss=("gone",)))
    assert isinstance(played.error, GlobalCommitFailed)
    assert coordinator.given_up == ()
