"""The driver's machine, driven by hand: what it wants next, after what happened."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from tests.driver.scripts import FakeEdge
from tests.job_events import event
from tests.plain_jobs import in_a_row
from twopc import events
from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.driver.actions import (
    AbortLingering,
    CloseCommitter,
    EndAttempt,
    Kill,
    NameDamage,
    RequestStop,
    Settle,
    StartAttempt,
    Submit,
)
from twopc.driver.effects import Action, Log
from twopc.driver.host import Told
from twopc.driver.input_watch import LookAtInput
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
from twopc.driver.preparation import idle_subtasks
from twopc.driver.running_job import RunningJob
from twopc.driver.supervision import PATIENCE_SECONDS
from twopc.errors import (
    CheckpointCorrupted,
    ConfigurationError,
    Fenced,
    TwoPhaseCommitError,
    Unavailable,
    UserCodeError,
)
from twopc.input_now import InputNow
from twopc.operators import StatefulMap
from twopc.partition_groups import assign
from twopc.protocol import requests
from twopc.protocol.attempts import GlobalCommit, StartedAttempt
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, Committable
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import Witnessed
from twopc.protocol.requests import ConfirmCommittables, NextGlobalCommit, Request
from twopc.serde import Json
from twopc.sink import Committer, Settled, Sink, SinkWriter
from twopc.source import Follower, FollowerStanding, Source, SourcePlanner, SourceReader, Split

NEWEST = CheckpointMetadata("flights", CheckpointId(7), AttemptId(2), 1, CheckpointKind.PERIODIC, 0, 0, ())
FIRST = StartedAttempt(AttemptId(1), None, None, frozenset(), earlier_attempts=False)
LATER = StartedAttempt(AttemptId(3), NEWEST, NEWEST, frozenset(), earlier_attempts=True)
E = TypeVar("E")


class Coordinator:
    """One that knows the job as far as `started` says; `newer_attempt`: another run has the job now."""

    def __init__(self, started: StartedAttempt = FIRST, *, newer_attempt: bool = False) -> None:
        self.started = started
        self._newer_attempt = newer_attempt

    def ask(self, job: str, request: Request[Any]) -> Any:
        match request:
            case requests.StartAttempt():
                return self.start_attempt()
            case ConfirmCommittables():
                return self.confirm(request)
            case NextGlobalCommit():
                return self.next_global_commit()

    def start_attempt(self) -> StartedAttempt:
        return self.started

    def confirm(self, request: ConfirmCommittables) -> None:
        if self._newer_attempt:
            raise Fenced(f"attempt {request.attempt} does not own the job")

    def next_global_commit(self) -> GlobalCommit | None:
        return None


class MovedOn(Follower):
    """A consumer group that has positions of an attempt that this coordinator's answer knows nothing of."""

    name = "flights"

    def cluster(self) -> str:
        return "cluster"

    def standing(self) -> FollowerStanding:
        return FollowerStanding(Witnessed(9, 4))


class FollowedSource(Source, SourcePlanner):
    """One whose group has moved on."""

    def open_planner(self, *_: object) -> SourcePlanner:
        return self

    def plan(self, *_: object) -> list[Split]:
        raise NotImplementedError

    def open_reader(self, *_: object) -> SourceReader:
        raise NotImplementedError

    def follower(self) -> Follower:
        return MovedOn()


class QuietSource(Source, SourcePlanner):
    """One split, read from `start`, which is in the middle where it isn't 0; or what planning it meets."""

    def __init__(self, start: int = 0, meets: TwoPhaseCommitError | None = None) -> None:
        self._splits = [Split("in[0]", 0, start, None)]
        self._meets = meets

    def skips(self, split: Split) -> bool:
        return bool(split.start > 0)

    def open_planner(self, *_: object) -> SourcePlanner:
        return self

    def plan(self, *_: object) -> list[Split]:
        if self._meets is not None:
            raise self._meets
        return self._splits

    def open_reader(self, *_: object) -> SourceReader:
        raise NotImplementedError


class EmptySink(Sink, Committer):
    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        raise NotImplementedError

    def open_committer(self, context: JobContext) -> Committer:
        return self

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return []


HOST = SimpleNamespace(notice=lambda: None, submit=lambda *_: None)


class Played:
    """A machine whose actions are carried out at once, but for those that `holds` has no answer for."""

    def __init__(
        self,
        *,
        coordinator: Coordinator | None = None,
        source: Source | None = None,
        sink: Sink | None = None,
        settings: RunSettings | None = None,
        steps: tuple[Any, ...] = (),
        restore_from: str = "latest",
        holds: type[Action[Any]] | None = None,
    ) -> None:
        self.seen: list[Output] = []
        self.now = 0.0
        self._holds = holds
        definition = in_a_row("flights", source or QuietSource(), steps, sink or EmptySink())
        self._edge = FakeEdge(definition, definition.source, definition.sink, coordinator or Coordinator(), HOST)
        self.driver = Driver(RunningJob(definition, "", ""), settings or RunSettings(), restore_from)
        self.happens(Start())

    def happens(self, event: Event, now: float | None = None) -> Played:
        self.now = self.now if now is None else now
        for output in self.driver.step(event, self.now):
            self.seen.append(output)
            if isinstance(output, ActionRequest) and type(output.action) is not self._holds:
                self.happens(self._carried_out(output))
        return self

    def _carried_out(self, wanted: ActionRequest) -> Event:
        try:
            return Answer(wanted.number, wanted.action.carry_out(self._edge))
        except TwoPhaseCommitError as error:
            return ActionFailed(wanted.number, error)

    def answer(self, kind: type[Action[Any]], answer: Any) -> Played:
        """Answer the last of these late."""
        number = max(
            output.number for output in self.seen if isinstance(output, ActionRequest) and type(output.action) is kind
        )
        return self.happens(Answer(number, answer))

    def hears(self, kind: type[events.CoordinatorEvent], **more: Any) -> Played:
        return self.happens(event(kind, attempt=self.driver.progress.current.attempt, **more))

    def attaches(self) -> Played:
        return self.hears(events.SubtaskAttached, subtask=SubtaskIndex(0))

    def actions(self, kind: type[E]) -> list[E]:
        return [
            output.action
            for output in self.seen
            if isinstance(output, ActionRequest) and isinstance(output.action, kind)
        ]

    @property
    def over(self) -> bool:
        return any(isinstance(output, Over) for output in self.seen)

    @property
    def error(self) -> BaseException | None:
        [over] = [output for output in self.seen if isinstance(output, Over)]
        return over.error

    @property
    def lines(self) -> list[str]:
        return [output.message for output in self.seen if isinstance(output, Log)]


def test_a_job_that_has_finished_is_told_killed_and_swept_once_more() -> None:
    played = Played().attaches().hears(events.JobFinished)
    assert played.error is None
    [end] = played.actions(EndAttempt)
    assert end.reason == "finished"
    kinds = [type(output.action) for output in played.seen if isinstance(output, ActionRequest)]
    assert kinds[-2:] == [AbortLingering, CloseCommitter]
    assert Kill in kinds


def test_what_is_gone_because_another_driver_took_over_is_no_damage() -> None:
    missing = CheckpointCorrupted("chk-7/subtask-0 is not there")
    played = Played(coordinator=Coordinator(LATER, newer_attempt=True), source=QuietSource(meets=missing))
    assert isinstance(played.error, Fenced)
    assert "does not own the job" in str(played.error)
    assert [end.reason for end in played.actions(EndAttempt)] == [str(missing)]
    assert played.actions(NameDamage) == []


def test_what_is_damaged_is_named_by_whoever_owns_the_job() -> None:
    missing = CheckpointCorrupted("chk-7/subtask-0 is not there")
    played = Played(coordinator=Coordinator(LATER), source=QuietSource(meets=missing))
    assert isinstance(played.error, CheckpointCorrupted)
    assert [(named.error, named.checkpoint_id) for named in played.actions(NameDamage)] == [(missing, 7)]


def test_a_start_that_fails_before_there_ever_was_a_subtask_is_not_tried_again() -> None:
    played = Played(coordinator=Coordinator(LATER), source=QuietSource(meets=Unavailable("no broker answers")))
    assert isinstance(played.error, Unavailable)
    assert len(played.actions(StartAttempt)) == 1


def failed(**more: Any) -> Played:
    """One whose first attempt has failed while its subtasks ran."""
    return Played(**more).attaches().hears(events.AttemptFailed, message="gone", restartable=True)


def test_new_input_is_read_by_another_attempt_which_is_no_restart_after_a_failure() -> None:
    source = QuietSource()
    source.watch_ms = 1_000
    played = Played(source=source, settings=RunSettings(restart_strategy="none"), holds=LookAtInput).attaches()
    played.happens(Tick(), 1.5)
    played.answer(LookAtInput, InputNow((Split("in[1]", 1, 0, None),)))
    assert len(played.actions(StartAttempt)) == 1, "no checkpoint has completed since"
    played.hears(events.CheckpointCompleted, checkpoint_id=1)
    [_, again] = played.actions(StartAttempt)
    assert (again.restart, again.restore_from) == (True, "latest")
    [end] = played.actions(EndAttempt)
    assert "there is new input: in[1]" in end.reason
    assert played.actions(Kill)
    assert not played.over
    assert not [line for line in played.lines if "failed" in line]


def test_an_attempt_that_failed_is_followed_by_another_when_the_delay_is_over() -> None:
    played = failed(settings=RunSettings(restart_delay_ms=1_000))
    assert "attempt failed: gone; trying again in 1.0 s (restart 1)" in played.lines
    played.happens(Tick(), 0.9)
    assert len(played.actions(Submit)) == 1
    played.happens(Tick(), 1.0)
    assert [start.context.attempt for start in played.actions(StartAttempt)] == [NO_ATTEMPT, FIRST.attempt]
    assert [start.restart for start in played.actions(StartAttempt)] == [False, True]
    assert len(played.actions(Submit)) == 2
    assert not played.over


def test_a_run_that_gives_up_leaves_nothing_open() -> None:
    played = failed(settings=RunSettings(restart_strategy="none"))
    assert str(played.error) == "gone"
    assert len(played.actions(Submit)) == 1
    assert [start.restart for start in played.actions(StartAttempt)] == [False, True]
    assert "nothing is open; attempt 1 failed: gone" in played.actions(EndAttempt)[-1].reason


def test_brokers_that_do_not_answer_keep_no_run_from_giving_up() -> None:
    played = Played(coordinator=Coordinator(LATER), settings=RunSettings(restart_strategy="none"), holds=Settle)
    played.answer(Settle, []).attaches().hears(events.AttemptFailed, message="gone", restartable=True)
    assert not played.over, "what the failed attempt left open is being settled"
    assert str(played.happens(Tick(), 11.0).error) == "gone"
    assert any("is left to the next start" in line for line in played.lines)


def test_a_stop_while_a_broker_is_waited_for_ends_the_run_at_once_and_a_late_answer_changes_nothing() -> None:
    played = Played(coordinator=Coordinator(LATER), holds=Settle)
    played.happens(StopRequested())
    assert played.error is None
    assert "stopped before a record was read" in played.lines
    seen = len(played.seen)
    played.answer(Settle, [])
    assert len(played.seen) == seen
    assert played.actions(Submit) == []


def test_a_stop_of_running_subtasks_asks_for_a_last_checkpoint() -> None:
    played = Played().attaches().happens(StopRequested())
    assert len(played.actions(RequestStop)) == 1
    assert not played.over
    assert played.hears(events.JobFinished).error is None


def test_a_stop_while_the_job_waits_to_start_again_says_what_had_ended_it() -> None:
    error = failed().happens(StopRequested()).happens(Tick(), 60.0).error
    assert isinstance(error, Unavailable)
    assert "What had ended it: gone" in str(error)


def test_a_wish_to_end_at_once_is_met_by_killing_the_subtasks() -> None:
    played = Played().attaches()
    interrupt = KeyboardInterrupt()
    assert played.happens(AbortRequested(interrupt)).error is interrupt
    assert len(played.actions(Kill)) == 1


@pytest.mark.parametrize(("asked", "warnings"), [("latest", 1), ("none", 0)])
def test_states_that_begin_empty_in_the_middle_of_the_input_are_pointed_out_unless_that_was_asked(
    asked: str, warnings: int
) -> None:
    counting = StatefulMap(lambda state, value: (state, value), "count", Json())
    settings = RunSettings(restore_from=asked)
    played = Played(source=QuietSource(7), steps=(counting,), settings=settings, restore_from=asked)
    assert sum("begin empty" in line for line in played.lines) == warnings


@pytest.mark.parametrize(("told", "seconds"), [(Told.YES, 2.0), (Told.PERHAPS, 2.0), (Told.NO, 0.2)])
def test_what_a_subtask_has_told_is_waited_for_and_nothing_where_it_was_killed(told: Told, seconds: float) -> None:
    played = Played(settings=RunSettings(restart_strategy="none")).attaches()
    played.happens(SubtaskEnded(Unavailable("a process ended"), told)).happens(Tick(), seconds)
    if told is Told.YES:
        assert not played.over
        played.hears(events.AttemptFailed, message="poison", error_type="UserCodeError")
    assert type(played.error) is (UserCodeError if told is Told.YES else Unavailable)


def test_a_job_has_not_finished_before_all_that_was_told_of_it_has_come() -> None:
    played = Played().attaches().happens(SubtaskEnded(None, Told.PERHAPS)).happens(Tick(), 2.0)
    assert not played.over
    assert played.hears(events.JobFinished).error is None


def test_a_job_of_which_nobody_says_that_it_has_finished_has_not_however_well_its_subtasks_ended() -> None:
    played = Played(settings=RunSettings(restart_strategy="none")).attaches()
    error = played.happens(SubtaskEnded(None, Told.PERHAPS)).happens(Tick(), PATIENCE_SECONDS[Told.YES]).error
    assert "has not said that the job has finished" in str(error)


def test_a_job_that_has_finished_stays_so_whatever_a_subtask_met_at_its_end() -> None:
    played = Played().attaches().happens(SubtaskEnded(Unavailable("a process was killed"), Told.NO))
    assert played.hears(events.JobFinished).error is None


@pytest.mark.parametrize(("subtasks", "said"), [(3, "1 of 3 subtasks read nothing: splits to read: 2"), (2, None)])
def test_more_subtasks_than_partitions_are_pointed_out(subtasks: int, said: str | None) -> None:
    splits = [Split(f"in[{number}]", number, 0, None) for number in range(2)]
    assert idle_subtasks(assign(splits, subtasks, ())) == said


@pytest.mark.parametrize("newer_attempt", [True, False])
def test_a_group_that_has_moved_on_is_another_folder_s_unless_another_attempt_has_the_job(newer_attempt: bool) -> None:
    coordinator = Coordinator(newer_attempt=newer_attempt)
    error = Played(coordinator=coordinator, source=FollowedSource()).error
    assert isinstance(error, Fenced if newer_attempt else ConfigurationError)
