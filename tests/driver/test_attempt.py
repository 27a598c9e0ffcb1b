"""What an attempt that fails says: that something is damaged, or that another driver owns the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.driver.attempt import Attempt, AttemptFailed, _log_idle
from twopc.driver.embedded import CoordinatorAddress
from twopc.driver.events import EventWatch
from twopc.driver.host import Host
from twopc.driver.recovery import Planner, assign
from twopc.driver.signals import StopSignals
from twopc.errors import CheckpointCorrupted, Fenced, TwoPhaseCommitError, Unavailable, UserCodeError
from twopc.graph import JobDefinition
from twopc.operators.steps import StatefulMap
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, Committable
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId
from twopc.protocol.job_events import JobEvent
from twopc.rpc.job_client import JobClient, StartedAttempt
from twopc.serde import Json
from twopc.sink import Committer, Settled, Sink, SinkWriter
from twopc.source import Source, SourceReader, Split

NEWEST = CheckpointMetadata("flights", CheckpointId(7), AttemptId(2), 1, CheckpointKind.PERIODIC, 0, 0, ())
STARTED = StartedAttempt(AttemptId(3), NEWEST, NEWEST, frozenset(), earlier_attempts=True)


class Client:
    """A coordinator at which this attempt was started, and maybe a newer one since."""

    def __init__(self, *, newer_attempt: bool) -> None:
        self._newer_attempt = newer_attempt
        self.ended: list[str] = []
        self.restarted: list[AttemptId] = []

    def start_attempt(self, *_: object, restart_of: AttemptId, **__: object) -> StartedAttempt:
        self.restarted.append(restart_of)
        return STARTED

    def confirm(self, job: str, attempt: AttemptId, checkpoint_id: CheckpointId, names: Sequence[str]) -> None:
        if self._newer_attempt:
            raise Fenced(f"attempt {attempt} does not own the job")

    def end_attempt(self, job: str, attempt: AttemptId, reason: str) -> None:
        self.ended.append(reason)


class Watch:
    completed_in_attempt = False

    def attempt_started(self, attempt: AttemptId) -> None:
        pass

    def recovered(self, *_: object) -> None:
        pass

    def restored(self, *_: object) -> None:
        pass


class QuietSource(Source):
    """Knows of no input before it is planned; what does not begin at 0 begins in the middle."""

    def skips(self, split: Split) -> bool:
        return bool(split.start > 0)

    def plan(self, *_: object) -> list[Split]:
        raise NotImplementedError

    def open(self, *_: object) -> SourceReader:
        raise NotImplementedError


SOURCE = QuietSource()


class EmptySink(Sink, Committer):
    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        raise NotImplementedError

    def open_committer(self, context: JobContext) -> Committer:
        return self

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return []


class FailingPlanner(Planner):
    def __init__(self, error: TwoPhaseCommitError) -> None:
        self._error = error

    def plan(self, *_: object) -> list[Split]:
        raise self._error


def attempt_that_meets(error: TwoPhaseCommitError, client: Client) -> Attempt:
    """An attempt that meets this error before its subtasks start."""
    nothing: Any = None
    return Attempt(
        JobDefinition.in_a_row(
            "flights",
            SOURCE,
            (),
            EmptySink(),
        ),
        RunSettings(),
        cast(JobClient, client),
        CoordinatorAddress("127.0.0.1:1", "", None),
        cast(Host, nothing),
        FailingPlanner(error),
        cast(EventWatch, Watch()),
        StopSignals(),
    )


def failure_of(error: TwoPhaseCommitError, client: Client) -> TwoPhaseCommitError:
    with pytest.raises(AttemptFailed) as caught:
        attempt_that_meets(error, client).run("latest", None)
    return caught.value.error


def test_what_is_gone_because_another_driver_took_over_is_no_damage() -> None:
    client, missing = Client(newer_attempt=True), CheckpointCorrupted("chk-7/subtask-0 is not there")
    with pytest.raises(Fenced, match="does not own the job"):
        attempt_that_meets(missing, client).run("latest", None)
    assert client.ended == [str(missing)]


def test_what_is_damaged_is_named_by_whoever_owns_the_job() -> None:
    found = failure_of(CheckpointCorrupted("chk-7/subtask-0 is not there"), Client(newer_attempt=False))
    assert isinstance(found, CheckpointCorrupted)


def test_any_other_failure_is_said_as_it_is() -> None:
    found = failure_of(Unavailable("no broker answers"), Client(newer_attempt=True))
    assert isinstance(found, Unavailable)


@pytest.mark.parametrize(("subtasks", "said"), [(3, ["1 of 3 subtasks read nothing: splits to read: 2"]), (2, [])])
def test_more_subtasks_than_partitions_are_pointed_out(
    subtasks: int, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    splits = [Split(f"in[{number}]", number, 0, None) for number in range(2)]
    _log_idle(assign(splits, subtasks))
    assert caplog.messages == said


def test_a_restart_says_which_attempt_it_goes_on_from() -> None:
    client = Client(newer_attempt=False)
    with pytest.raises(AttemptFailed) as first:
        attempt_that_meets(Unavailable("gone"), client).run("latest", None)
    with pytest.raises(AttemptFailed):
        attempt_that_meets(Unavailable("gone"), client).run("latest", first.value)
    assert client.restarted == [NO_ATTEMPT, STARTED.attempt]


class PlannedAt(Planner):
    """Every partition is begun at this position."""

    def __init__(self, position: int) -> None:
        self._splits = [Split("in[0]", 0, position, None)]

    def plan(self, *_: object) -> list[Split]:
        return self._splits


class FirstStart(Client):
    """A coordinator that knows no checkpoint of the job."""

    def start_attempt(self, *_: object, restart_of: AttemptId, **__: object) -> StartedAttempt:
        return StartedAttempt(AttemptId(1), None, None, frozenset(), earlier_attempts=False)


class NoHost:
    def notice(self) -> str | None:
        return None

    def submit(self, *_: object) -> None:
        raise Unavailable("no host")


@pytest.mark.parametrize(("asked", "warnings"), [("latest", 1), ("none", 0)])
def test_states_that_begin_empty_in_the_middle_of_the_input_are_pointed_out_unless_that_was_asked(
    asked: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    counting = StatefulMap(lambda state, value: (state, value), "count", Json())
    attempt = Attempt(
        JobDefinition.in_a_row("flights", SOURCE, (counting,), EmptySink()),
        RunSettings(restore_from=asked),
        cast(JobClient, FirstStart(newer_attempt=False)),
        CoordinatorAddress("127.0.0.1:1", "", None),
        cast(Host, NoHost()),
        PlannedAt(7),
        cast(EventWatch, Watch()),
        StopSignals(),
    )
    with pytest.raises(AttemptFailed, match="no host"):
        attempt.run(asked, None)
    assert sum("begin empty" in message for message in caplog.messages) == warnings


class Ended:
    """A stage, and its host, of which a subtask has ended with an error, or all have without."""

    def __init__(self, *, error: str | None, said_why: bool) -> None:
        self._error = error
        self._said_why = said_why

    def submit(self, *_: object) -> Ended:
        return self

    def wait(self, timeout: float) -> bool:
        return True

    def drain(self, timeout: float) -> None:
        pass

    def error(self) -> TwoPhaseCommitError | None:
        return None if self._error is None else Unavailable(self._error)

    def has_said_why(self) -> bool:
        return self._said_why

    def notice(self) -> str | None:
        return None

    def shortage(self) -> str | None:
        return None

    def kill(self) -> None:
        pass


class LateWatch(Watch):
    """Hears two seconds after the subtasks have ended what they and the coordinator said."""

    def __init__(self, *, failed: bool) -> None:
        self._failed = failed
        self.finished = False
        self.failure: JobEvent | None = None

    def wait_for_end(self, seconds: float) -> None:
        if seconds < 2:
            return
        self.finished = not self._failed
        if self._failed:
            kind, message, error = "failed", "poison", "UserCodeError"
            self.failure = JobEvent(
                kind=kind, job="flights", attempt=AttemptId(1), time_ms=0, message=message, error_type=error
            )


def attempt_whose_stage_ends(stage: Ended, watch: LateWatch) -> Attempt:
    return Attempt(
        JobDefinition.in_a_row(
            "flights",
            SOURCE,
            (),
            EmptySink(),
        ),
        RunSettings(),
        cast(JobClient, FirstStart(newer_attempt=False)),
        CoordinatorAddress("127.0.0.1:1", "", None),
        cast(Host, stage),
        PlannedAt(0),
        cast(EventWatch, watch),
        StopSignals(),
    )


@pytest.mark.parametrize(("said_why", "told"), [(True, UserCodeError), (False, Unavailable)])
def test_what_a_subtask_has_told_is_waited_for_however_late_it_comes(
    said_why: bool, told: type[TwoPhaseCommitError]
) -> None:
    stage = Ended(error="a process ended", said_why=said_why)
    with pytest.raises(AttemptFailed) as caught:
        attempt_whose_stage_ends(stage, LateWatch(failed=True)).run("latest", None)
    assert type(caught.value.error) is told


def test_a_job_has_not_finished_before_all_that_was_told_of_it_has_come() -> None:
    watch = LateWatch(failed=False)
    attempt_whose_stage_ends(Ended(error=None, said_why=False), watch).run("latest", None)
    assert watch.finished


def test_a_job_of_which_nobody_says_that_it_has_finished_has_not_however_well_its_subtasks_ended() -> None:
    watch = LateWatch(failed=False)
    watch.wait_for_end = lambda seconds: None  # type: ignore[method-assign]
    with pytest.raises(AttemptFailed, match="has not said that the job has finished"):
        attempt_whose_stage_ends(Ended(error=None, said_why=False), watch).run("latest", None)


def test_a_job_that_has_finished_stays_so_whatever_a_subtask_met_at_its_end() -> None:
    stage = Ended(error="a process was killed", said_why=True)
    attempt_whose_stage_ends(stage, LateWatch(failed=False)).run("latest", None)
