"""One attempt of a job, as scripts: fence, recover, plan, submit, supervise, and say how it ended. Pure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from twopc import events
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.actions import (
    AbortLingering,
    Confirm,
    Drain,
    FindHostNotice,
    FindTraces,
    NameDamage,
    StartAttempt,
    Submit,
)
from twopc.driver.attempt_end import close, closing_committer, end, last_sweep
from twopc.driver.control import AnswerTimeout, EndOf, Now, Supervise, unless_stopped, within
from twopc.driver.effects import UNTIMED, Begun, Script, Tell, do
from twopc.driver.fencing import explained, refuse_successor
from twopc.driver.host import StoppedEarly
from twopc.driver.input_watch import watch_of
from twopc.driver.preparation import Preparation
from twopc.driver.progress import RunProgress
from twopc.driver.recovery import Planner
from twopc.driver.running_job import RunningJob
from twopc.driver.supervision import Supervision
from twopc.driver.trimming import trims_of
from twopc.errors import CheckpointCorrupted, Fenced, TwoPhaseCommitError
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.ids import NO_ATTEMPT, NO_CHECKPOINT, AttemptId, CheckpointId
from twopc.protocol.layout import checkpoint_of_folder

DRAIN_SECONDS = 10.0
"""How long subtasks may take to end by themselves after the job has finished."""

CLAIMS_SECONDS = 5.0
"""How long to wait for the answer whether another run has taken over, where the next attempt asks it again anyway."""

LAST_SWEEP_SECONDS = 5.0
"""How long to wait for a sweep at the end. One that takes longer does no harm: it touches no later attempt's ids."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The end of an attempt that did not finish; `error` is what a user should see if it is not tried again.

    `attempt` is 0 if it isn't known whether it was started. `submitted`: whether it got so far as to have subtasks.
    """

    error: TwoPhaseCommitError
    attempt: AttemptId = NO_ATTEMPT
    submitted: bool = False
    ran_seconds: float = 0.0
    completed_checkpoint: bool = False


@dataclass(slots=True)
class Attempt:
    """Whatever happens, its subtasks have ended when `script` returns or raises."""

    job: RunningJob
    settings: RunSettings
    planner: Planner
    progress: RunProgress
    restore_from: str
    failed: Failure | None
    _attempt: AttemptId = NO_ATTEMPT
    _submitted: bool = False

    def script(self) -> Script[Failure | None]:
        """Run to the end of the job, None, or to what ends the attempt; raise Fenced, StoppedEarly before a subtask."""
        began = yield from do(Now())
        try:
            started = yield from unless_stopped(self._start())
        except TwoPhaseCommitError as met:
            restored = checkpoint_of_folder(f"chk-{self.restore_from}")
            return Failure((yield from self._with_damage(met, restored)))
        self._attempt = started.attempt
        latest = NO_CHECKPOINT if started.latest is None else started.latest.checkpoint_id
        self.progress.attempt_started(started.attempt, latest)
        yield Begun()
        context = self._context(started.attempt)
        try:
            yield from closing_committer(self._run(context, started))
        except TwoPhaseCommitError as met:
            error = yield from self._judged(met, context, started)
            now = yield from do(Now())
            completed = self.progress.current.completed > 0
            return Failure(error, self._attempt, self._submitted, now - began, completed)
        return None

    def _context(self, attempt: AttemptId) -> JobContext:
        return JobContext(self.job.name, attempt, self.settings.parallelism, self.settings)

    def _judged(
        self, error: TwoPhaseCommitError, context: JobContext, started: StartedAttempt
    ) -> Script[TwoPhaseCommitError]:
        if not isinstance(error, CheckpointCorrupted) or started.restored is None:
            return error
        # Whoever wakes after another took the job over misses what that one has deleted: nothing is damaged.
        yield Confirm(context, started.restored.checkpoint_id)
        return (yield from self._with_damage(error, started.restored.checkpoint_id))

    def _with_damage(
        self, error: TwoPhaseCommitError, checkpoint_id: CheckpointId | None
    ) -> Script[TwoPhaseCommitError]:
        """Name all that is damaged, where something is, as every command does; other errors as they are."""
        if not isinstance(error, CheckpointCorrupted):
            return error
        try:
            return (yield from unless_stopped(do(NameDamage(error, checkpoint_id))))
        except StoppedEarly:
            # All of a large state is read to name what is damaged: who wants to stop is told what is known.
            return error

    def _start(self) -> Script[StartedAttempt]:
        before = NO_ATTEMPT if self.failed is None else self.failed.attempt
        context = self._context(before)
        traces = yield from do(FindTraces(context))
        if before != NO_ATTEMPT:
            refuse_successor(traces, context)
        restart = self.failed is not None
        return (yield from do(StartAttempt(context, self.restore_from, traces, restart=restart)))

    def _run(self, context: JobContext, started: StartedAttempt) -> Script[None]:
        goes_on = self.failed is not None
        preparation = Preparation(self.job, self.settings, self.planner, self.restore_from, goes_on)
        try:
            specs = yield from unless_stopped(preparation.script(context, started))
            if (notice := (yield from do(FindHostNotice()))) is not None:
                yield Tell(events.HostStarting(context.job, context.attempt, UNTIMED, message=notice))
            yield Submit(specs)
            self._submitted = True
        except (TwoPhaseCommitError, StoppedEarly) as error:
            yield from end(context, str(error))
            raise
        commits_globally = any(group.is_global for group in specs[0].groups)
        splits = tuple(split for spec in specs for split in spec.splits)
        input_watch = watch_of(context, self.job.definition.source, splits)
        trims = trims_of(self.job.definition)
        yield from self._supervise(Supervision(context, self.progress.current, commits_globally, input_watch, trims))

    def _supervise(self, supervision: Supervision) -> Script[None]:
        """Return when the job has finished; raise what ends the attempt otherwise. No subtask is left."""
        context = supervision.context
        ended: Exception | KeyboardInterrupt | None = None
        reason = "finished"
        try:
            yield Supervise(supervision)
            yield Drain(DRAIN_SECONDS)
        except TwoPhaseCommitError as error:
            ended = yield from self._explained(error, context)
            reason = str(ended)
        except StoppedEarly as early:
            ended, reason = early, str(early)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below
            ended, reason = error, "the driver ended the attempt"
        yield from close(context, reason)
        with suppress(AnswerTimeout):
            yield from within(LAST_SWEEP_SECONDS, last_sweep() if ended is None else do(EndOf(AbortLingering)))
        if ended is not None:
            raise ended

    def _explained(self, error: TwoPhaseCommitError, context: JobContext) -> Script[Exception]:
        """Tell another run, which is final, from what else ends an attempt: it may fail in many ways for that reason.

        A broker fences a producer that was silent for too long, too: there, and only there, the answer decides
        whether the run goes on.
        """
        failure = self.progress.current.failure
        if failure is None or isinstance(failure, events.AttemptFenced):
            return error
        fenced = isinstance(error, Fenced)
        asked = do(FindTraces(context))
        try:
            traces = yield from unless_stopped(asked) if fenced else within(CLAIMS_SECONDS, asked)
        except (TwoPhaseCommitError, StoppedEarly) as told:
            return told if fenced else error
        except AnswerTimeout:
            return error
        return explained(error, traces, context)
