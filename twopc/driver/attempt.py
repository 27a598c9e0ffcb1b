"""One attempt of a job, as scripts: fence, recover, plan, submit, supervise, and say how it ended. Pure."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from twopc import events
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.actions import (
    AbortLingering,
    CloseCommitter,
    Confirm,
    Drain,
    EndAttempt,
    FindClusters,
    FindHostNotice,
    FindStanding,
    FindTraces,
    Kill,
    NameDamage,
    OpenCommitter,
    RemoveWork,
    StartAttempt,
    Submit,
)
from twopc.driver.control import EndOf, Late, Now, Pause, Supervise, unless_stopped, within
from twopc.driver.effects import UNTIMED, Begun, Log, Script, Tell, do
from twopc.driver.fencing import explained, refuse_successor
from twopc.driver.host import StoppedEarly
from twopc.driver.progress import RunProgress
from twopc.driver.recovery import Planner, Recovered, recovery
from twopc.driver.restore_checks import (
    emptied_states,
    refuse_emptied_states,
    refuse_moved_on,
    refuse_unknown_middle,
    refuse_unread_inputs,
    repeated_output,
)
from twopc.driver.supervision import SWEEP_RETRY_SECONDS, Supervision, Sweeps
from twopc.errors import CheckpointCorrupted, ConfigurationError, Fenced, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.listing import listed
from twopc.partition_groups import assign, concerning, owned
from twopc.protocol.attempts import StartedAttempt
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import NO_ATTEMPT, NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import checkpoint_of_folder
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed
from twopc.runtime.spec import SubtaskSpec
from twopc.sink import Outcome
from twopc.source import FollowerStanding, Split
from twopc.transaction_group import TransactionGroup

DRAIN_SECONDS = 10.0
"""How long subtasks may take to end by themselves after the job has finished."""

LAST_SWEEP_SECONDS = 5.0
"""How long to wait for a sweep at the end. One that takes longer does no harm: it touches no later attempt's ids."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job, and where its subtasks find the coordinator."""

    definition: JobDefinition
    address: str
    token: str

    @property
    def name(self) -> str:
        return self.definition.name


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt ended that did not finish; `error` is what a user should see if it is not tried again.

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
        try:
            specs = yield from unless_stopped(self._prepare(context, started))
            if (notice := (yield from do(FindHostNotice()))) is not None:
                yield Tell(events.HostStarting(context.job, context.attempt, UNTIMED, message=notice))
            yield Submit(specs)
            self._submitted = True
        except (TwoPhaseCommitError, StoppedEarly) as error:
            yield from _end(context, str(error))
            raise
        yield from self._supervise(context, commits_globally=any(group.is_global for group in specs[0].groups))

    def _prepare(self, context: JobContext, started: StartedAttempt) -> Script[tuple[SubtaskSpec, ...]]:
        """Recover and plan: all that comes before the first subtask. Late or twice, it does no harm."""
        yield OpenCommitter(context)
        source, dropped = self.job.definition.source, self.settings.dropped_inputs()
        # Before anything is changed on the broker, where the source knows what it reads; else when it has planned.
        if inputs := source.inputs:
            refuse_unread_inputs(
                started.restored, lambda split: source.input_of(split) in inputs, source.input_of, inputs, dropped
            )
        # Before anything is taken over from whoever knows more, and when nothing can change any more.
        yield from self._checked_standing(context, started)
        recovered = yield from recovery(context, started)
        standing = yield from self._checked_standing(context, started)
        yield from _tell_recovery(context, recovered)
        restored = recovered.restored
        splits = yield from self.planner.plan(context, started, restored, standing.witnessed)
        read = {split.id for split in splits}
        refuse_unread_inputs(restored, read.__contains__, source.input_of, map(source.input_of, read), dropped)
        if (twice := repeated_output(started.latest, started.restored, splits, source.precedes)) is not None:
            yield Log(logging.WARNING, twice, never_hidden=True)
        yield from self._tell_starts(context, restored, splits)
        clusters = yield from do(FindClusters(context))
        follower, why_none = clusters.witness()
        if why_none is not None:
            yield Log(logging.INFO, why_none)
        assigned = assign(splits, context.parallelism, self.job.definition.keyed_sources)
        if (idle := idle_subtasks(assigned)) is not None:
            yield Log(logging.WARNING, idle)
        return self._specs(context, assigned, restored, clusters.groups, follower)

    def _specs(
        self,
        context: JobContext,
        assigned: Sequence[tuple[Split, ...]],
        restored: CheckpointMetadata | None,
        groups: tuple[TransactionGroup, ...],
        follower: str | None,
    ) -> tuple[SubtaskSpec, ...]:
        snapshots = () if restored is None else restored.snapshots
        keyed = self.job.definition.keyed_sources
        return tuple(
            SubtaskSpec(
                job=context.job,
                attempt=context.attempt,
                subtask=SubtaskIndex(index),
                parallelism=context.parallelism,
                coordinator=self.job.address,
                token=self.job.token,
                settings=self.settings,
                splits=splits,
                snapshots=concerning(SubtaskIndex(index), owned(splits, keyed), snapshots),
                groups=groups,
                follower=follower,
            )
            for index, splits in enumerate(assigned)
        )

    def _tell_starts(
        self, context: JobContext, restored: CheckpointMetadata | None, splits: Sequence[Split]
    ) -> Script[None]:
        """Tell from where what is read is read on, or that states begin empty there."""
        if restored is not None:
            starts = listed(str(split.begin) for split in splits)
            number = restored.checkpoint_id
            yield Tell(
                events.CheckpointRestored(context.job, context.attempt, UNTIMED, checkpoint_id=number, starts=starts)
            )
        elif self.settings.restore_from == LATEST:
            states, skips = self._states(), self.job.definition.source.skips
            empty = emptied_states(states, splits, skips, self.settings.checkpoint_dir)
            if empty is not None:
                yield Log(logging.WARNING, empty)

    def _states(self) -> list[str]:
        return list(map(str, self.job.definition.state_serdes))

    def _checked_standing(self, context: JobContext, started: StartedAttempt) -> Script[FollowerStanding]:
        """Refuse to start where the brokers know more than the ledger; who names a start, or goes on, knows it."""
        follower, standing = yield from do(FindStanding(context))
        if self.restore_from != LATEST or self.failed is not None:
            return standing
        states, folder = self._states(), self.settings.checkpoint_dir
        newest = started.latest
        latest = NOTHING_WITNESSED if newest is None else Witnessed(newest.checkpoint_id, newest.attempt)
        accepted = None if started.planned is None else started.planned.witnessed
        try:
            refuse_moved_on(follower, standing.witnessed, latest, folder, accepted)
        except ConfigurationError:
            # Whoever was held up while another took the job over sees that one's positions: it is fenced, no more.
            yield Confirm(context, NO_CHECKPOINT)
            raise
        if started.restored is not None:
            refuse_unknown_middle(states, standing, started.restored, self.job.definition.source.input_of)
        elif started.planned is None:
            refuse_emptied_states(states, standing, folder)
        return standing

    def _supervise(self, context: JobContext, *, commits_globally: bool) -> Script[None]:
        """Return when the job has finished; raise what ends the attempt otherwise. No subtask is left."""
        supervision = Supervision(context, self.progress.current, commits_globally)
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
        yield from _close(context, reason)
        with suppress(Late):
            yield from within(LAST_SWEEP_SECONDS, _last_sweep() if ended is None else do(EndOf(AbortLingering)))
        if ended is not None:
            raise ended

    def _explained(self, error: TwoPhaseCommitError, context: JobContext) -> Script[Exception]:
        """Tell another run, which is final, from the broker itself, which fences whoever was silent for too long."""
        failure = self.progress.current.failure
        if not isinstance(error, Fenced) or failure is None or isinstance(failure, events.AttemptFenced):
            return error
        try:
            traces = yield from unless_stopped(do(FindTraces(context)))
            return explained(error, traces, context)
        except (TwoPhaseCommitError, StoppedEarly) as told:
            return told


def closing_committer(script: Script[None]) -> Script[None]:
    """Play a script that opens the attempt's committer, and close that."""
    ended: Exception | KeyboardInterrupt | None = None
    try:
        yield from script
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below
        ended = error
    yield CloseCommitter()
    if ended is not None:
        raise ended


def _close(context: JobContext, reason: str) -> Script[None]:
    """Tell the coordinator, and leave no subtask."""
    not_told: TwoPhaseCommitError | None = None
    try:
        yield from _end(context, reason)
    except TwoPhaseCommitError as error:
        not_told = error
    yield Kill()
    yield RemoveWork(context.attempt)
    if not_told is not None:
        raise not_told


def _end(context: JobContext, reason: str) -> Script[None]:
    """Tell the coordinator, if it can be reached: the next attempt would end this one just as well."""
    try:
        yield EndAttempt(context, reason)
    except Unavailable as error:
        yield Log(logging.INFO, f"the coordinator was not told that attempt {context.attempt} is over: {error}")


def _last_sweep() -> Script[None]:
    """Sweep once more when the job has finished: nobody may come by for a long time."""
    yield EndOf(AbortLingering)
    sweeps = Sweeps()
    while True:
        try:
            answer: list[str] | Exception = yield from do(AbortLingering())
        except Exception as error:  # noqa: BLE001 - no outcome of a sweep ends a job that is well
            answer = error
        yield from sweeps.answered(answer, 0.0)
        if not isinstance(answer, Unavailable):
            return
        yield Pause(SWEEP_RETRY_SECONDS)


def idle_subtasks(assigned: Sequence[Sequence[Split]]) -> str | None:
    """Say that some subtasks read nothing; None where all do."""
    if idle := sum(not splits for splits in assigned):
        return f"{idle} of {len(assigned)} subtasks read nothing: splits to read: {sum(map(len, assigned))}"
    return None


def _tell_recovery(context: JobContext, recovered: Recovered) -> Script[None]:
    """Tell what recovery did, in the same stream as the coordinator's events."""
    job, attempt = context.job, context.attempt
    if recovered.restored is not None:
        yield Log(logging.DEBUG, f"attempt {attempt}: restored checkpoint {recovered.restored.checkpoint_id}")
    for item in recovered.settled:
        committable = item.committable
        yield Log(logging.DEBUG, f"transaction {committable.name}: {item.outcome.value} ({item.evidence})")
        if item.outcome is Outcome.COMMITTED:
            yield Tell(
                events.TransactionResumed(
                    job,
                    attempt,
                    UNTIMED,
                    checkpoint_id=committable.checkpoint_id,
                    subtask=committable.subtask,
                    transaction=committable.name,
                )
            )
    for name in recovered.lingering:
        yield Tell(events.TransactionAborted(job, attempt, UNTIMED, transaction=name))
    if recovered.lingering:
        yield Log(logging.DEBUG, f"lingering transactions aborted: {listed(recovered.lingering)}")
