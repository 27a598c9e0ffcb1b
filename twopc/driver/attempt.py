"""One attempt of a job: fence, recover, plan, submit, watch, and say how it ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from twopc import errors
from twopc.checkpoints.damage import refusal
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.embedded import CoordinatorAddress
from twopc.driver.events import EventWatch
from twopc.driver.fencing import explained, refuse_successor
from twopc.driver.fresh_start import emptied, refuse_emptied, refuse_moved_on, refuse_unknown_middle
from twopc.driver.going_back import consequence
from twopc.driver.host import Host, Stage, StoppedEarly
from twopc.driver.left_behind import refuse_left_behind
from twopc.driver.recovery import Planner, Recovered, assign, recover
from twopc.driver.shortage import Shortage
from twopc.driver.signals import StopSignals
from twopc.driver.stop import Stop
from twopc.driver.sweeper import Sweeper
from twopc.driver.witness import group_of_transactions
from twopc.errors import CheckpointCorrupted, Fenced, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.logs import NEVER_HIDDEN
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_events import JobEvent
from twopc.protocol.layout import checkpoint_of_folder
from twopc.protocol.planned_starts import NOTHING_WITNESSED, Witnessed
from twopc.rpc.job_client import JobClient, StartedAttempt
from twopc.runtime.spec import SubtaskSpec, concerning
from twopc.sink import Committer
from twopc.source import GroupStanding, Split
from twopc.storage.work_folder import remove_of_attempt

log = logging.getLogger(__name__)

TICK_SECONDS = 0.1
SAID_SECONDS, UNSAID_SECONDS = 10.0, 0.5
"""How long the job's end may be on its way, through the coordinator, if it was told, and if nobody knows."""

DRAIN_SECONDS = 10.0
"""How long subtasks may take to end by themselves after the job has finished."""


class AttemptFailed(Exception):
    """An attempt ended without finishing; `error` is what a user should see if it is not tried again.

    `attempt` is 0 if it isn't known whether it was started.
    """

    def __init__(
        self,
        error: TwoPhaseCommitError,
        *,
        submitted: bool,
        ran_seconds: float,
        completed_checkpoint: bool,
        attempt: AttemptId,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.restartable = error.restartable
        self.submitted = submitted
        self.ran_seconds = ran_seconds
        self.completed_checkpoint = completed_checkpoint
        self.attempt = attempt


class Attempt:
    """Runs once. Whatever happens, its subtasks have ended when `run` returns or raises."""

    def __init__(
        self,
        definition: JobDefinition,
        settings: RunSettings,
        client: JobClient,
        coordinator: CoordinatorAddress,
        host: Host,
        planner: Planner,
        watch: EventWatch,
        signals: StopSignals,
    ) -> None:
        self._definition = definition
        self._pipeline = definition.pipeline("run")
        self._settings = settings
        self._client = client
        self._coordinator = coordinator
        self._host = host
        self._planner = planner
        self._watch = watch
        self._signals = signals
        self._began = time.monotonic()
        self._submitted = False
        self._attempt = NO_ATTEMPT
        self._restore_from = LATEST
        self._is_restart = False

    def run(self, restore_from: str, failed: AttemptFailed | None) -> None:
        """Run to the end of the job.

        `failed` is the one before in this run, if there was one. Raises AttemptFailed; Fenced; StoppedEarly where a
        stop came before a subtask.
        """
        job = self._definition.name
        self._restore_from, self._is_restart = restore_from, failed is not None
        try:
            started = self._signals.unless_requested(partial(self._start, restore_from, failed))
        except TwoPhaseCommitError as error:
            raise self._failed(self._with_damage(error, checkpoint_of_folder(f"chk-{restore_from}"))) from error
        self._attempt = started.attempt
        self._watch.attempt_started(started.attempt)
        context = JobContext(job, started.attempt, self._settings.parallelism, self._settings)
        try:
            with self._pipeline.sink.open_committer(context) as committer:
                self._recover_and_run(context, started, committer)
        except AttemptFailed as failure:
            if isinstance(failure.error, CheckpointCorrupted) and started.restored is not None:
                # Whoever wakes after another took the job over misses what that one has deleted: nothing is damaged.
                self._client.confirm(job, started.attempt, started.restored.checkpoint_id, ())
                failure.error = self._with_damage(failure.error, started.restored.checkpoint_id)
            raise

    def _with_damage(self, error: TwoPhaseCommitError, checkpoint_id: CheckpointId | None) -> TwoPhaseCommitError:
        """Name all that is damaged, where something is, as every command does; other errors as they are."""
        if not isinstance(error, CheckpointCorrupted):
            return error
        folder, job = Path(self._settings.checkpoint_dir), self._definition.name
        try:
            return self._signals.unless_requested(partial(refusal, error, folder, job, checkpoint_id))
        except StoppedEarly:
            # All of a large state is read to name what is damaged: who wants to stop is told what is known.
            return error

    def _start(self, restore_from: str, failed: AttemptFailed | None) -> StartedAttempt:
        settings = self._settings
        before = NO_ATTEMPT if failed is None else failed.attempt
        context = JobContext(self._definition.name, before, settings.parallelism, settings)
        with self._pipeline.sink.open_committer(context) as committer:
            traces = committer.traces()
        if before != NO_ATTEMPT:
            refuse_successor(traces, context)
        return self._client.start_attempt(
            context.job,
            settings,
            restore_from,
            traces,
            restart=failed is not None,
            restart_of=before,
        )

    def _recover_and_run(self, context: JobContext, started: StartedAttempt, committer: Committer) -> None:
        job = context.job
        try:
            specs = self._signals.unless_requested(partial(self._prepare, context, started, committer))
            if (notice := self._host.notice()) is not None:
                self._watch.tell(context.attempt, "starting", notice)
            stage = self._host.submit(self._definition, specs)
            self._submitted = True
        except TwoPhaseCommitError as error:
            self._end(context, str(error))
            raise self._failed(error) from error
        except StoppedEarly as early:
            self._end(context, str(early))
            raise
        reason = "the driver ended the attempt"
        sweeper = Sweeper(committer.abort_lingering, lambda: self._watch.completed_in_attempt)
        try:
            self._supervise(context, stage, sweeper)
            reason = "finished"
        except StoppedEarly as early:
            reason = str(early)
            raise
        except TwoPhaseCommitError as error:
            told = self._explained(error, context, committer)
            reason = str(told)
            raise self._failed(told) from error
        finally:
            try:
                self._end(context, reason)
            finally:
                stage.kill()
                remove_of_attempt(Path(self._settings.checkpoint_dir), job, started.attempt)
                sweeper.close(finished=reason == "finished")

    def _end(self, context: JobContext, reason: str) -> None:
        """Tell the coordinator, if it can be reached: the next attempt would end this one just as well."""
        try:
            self._client.end_attempt(context.job, context.attempt, reason)
        except Unavailable as error:
            log.info("the coordinator was not told that attempt %d is over: %s", context.attempt, error)

    def _prepare(self, context: JobContext, started: StartedAttempt, committer: Committer) -> list[SubtaskSpec]:
        """Recover and plan: all that comes before the first subtask. Late or twice, it does no harm."""
        source, dropped = self._pipeline.source, self._settings.dropped_inputs()
        # Before anything is changed on the broker, where the source knows what it reads; else when it has planned.
        if topics := source.topics:
            refuse_left_behind(
                started.restored, lambda split: source.input_of(split) in topics, source.input_of, topics, dropped
            )
        # Before anything is taken over from whoever knows more, and when nothing can change any more.
        self._checked_standing(context, started)
        recovered = recover(self._client, source, committer, context, started)
        standing = self._checked_standing(context, started)
        _log_recovery(started, recovered)
        self._watch.recovered(context.attempt, recovered)
        splits = self._planner.plan(self._client, context, started, recovered.restored, standing.witnessed)
        read = {split.id for split in splits}
        refuse_left_behind(recovered.restored, read.__contains__, source.input_of, map(source.input_of, read), dropped)
        if (twice := consequence(started.latest, started.restored, splits, source.precedes)) is not None:
            logging.getLogger(NEVER_HIDDEN).warning("%s", twice)
        self._watch.restored(context.attempt, recovered.restored, splits)
        snapshots = () if recovered.restored is None else recovered.restored.snapshots
        if recovered.restored is None and self._settings.restore_from == LATEST:
            _warn(emptied(self._definition.state_serdes, splits, source.skips, self._settings.checkpoint_dir))
        assigned = assign(splits, context.parallelism)
        _log_idle(assigned)
        group = group_of_transactions(self._pipeline, context)
        return [
            SubtaskSpec(
                job=context.job,
                attempt=context.attempt,
                subtask=SubtaskIndex(index),
                parallelism=context.parallelism,
                coordinator=self._coordinator.address,
                token=self._coordinator.token,
                settings=self._settings,
                splits=mine,
                snapshots=concerning(SubtaskIndex(index), mine, snapshots),
                group=group,
            )
            for index, mine in enumerate(assigned)
        ]

    def _checked_standing(self, context: JobContext, started: StartedAttempt) -> GroupStanding:
        """Refuse to start where the brokers know more than the ledger; who names a start, or goes on, knows it."""
        source = self._pipeline.source
        standing = source.standing(context)
        if self._restore_from != LATEST or self._is_restart:
            return standing
        group, folder = source.group(context) or "", self._settings.checkpoint_dir
        newest = started.latest
        latest = NOTHING_WITNESSED if newest is None else Witnessed(newest.checkpoint_id, newest.attempt)
        accepted = None if started.planned is None else started.planned.witnessed
        refuse_moved_on(group, standing.witnessed, latest, folder, accepted)
        if started.restored is not None:
            refuse_unknown_middle(self._definition.state_serdes, standing, started.restored, source.input_of)
        elif started.planned is None:
            refuse_emptied(self._definition.state_serdes, standing, folder)
        return standing

    def _supervise(self, context: JobContext, stage: Stage, sweeper: Sweeper) -> None:
        shortage = Shortage(stage, lambda said: self._watch.tell(context.attempt, "waiting", said))
        stop: Stop | None = None
        while True:
            ended = stage.wait(TICK_SECONDS)
            if self._watch.finished:
                break
            if self._watch.failure is not None:
                raise _error_of(self._watch.failure) from (stage.error() if ended else None)
            if sweeper.fenced is not None:
                raise sweeper.fenced
            if ended:
                self._take_end(stage)
                break
            if self._signals.requested:
                stop = stop or Stop(self._client, context)
                stop.check(self._watch)
            if not self._watch.liveness.attached:
                shortage.look(time.monotonic())
        stage.drain(DRAIN_SECONDS)

    def _take_end(self, stage: Stage) -> None:
        """A subtask is gone: return if the job has finished. What one managed to say outweighs what the host saw.

        When the end has come, so has all that was told before: the report is of the whole run.
        """
        seen = stage.error()
        self._watch.wait_for_end(SAID_SECONDS if seen is None or stage.has_said_why() else UNSAID_SECONDS)
        if self._watch.finished:
            return
        if self._watch.failure is not None:
            raise _error_of(self._watch.failure) from seen
        raise seen or Unavailable(
            "a subtask has ended, and the coordinator has not said that the job has finished: is it running?"
        )

    def _explained(self, error: TwoPhaseCommitError, context: JobContext, committer: Committer) -> TwoPhaseCommitError:
        """Say what it means that the brokers fenced a subtask; other errors as they are."""
        if not isinstance(error, Fenced) or self._watch.failure is None or self._watch.failure.kind == "fenced":
            return error
        return self._signals.unless_requested(partial(explained, error, committer, context))

    def _failed(self, error: TwoPhaseCommitError) -> AttemptFailed:
        return AttemptFailed(
            error,
            submitted=self._submitted,
            ran_seconds=time.monotonic() - self._began,
            completed_checkpoint=self._watch.completed_in_attempt,
            attempt=self._attempt,
        )


def _error_of(event: JobEvent) -> TwoPhaseCommitError:
    """Turn a reported failure into the error that the user knows by that name."""
    if event.kind == "fenced":
        return Fenced(event.message)
    known = getattr(errors, event.error_type, None)
    if isinstance(known, type) and issubclass(known, TwoPhaseCommitError):
        error: TwoPhaseCommitError = known(event.message)
    else:
        error = TwoPhaseCommitError(event.message)
    error.restartable = event.restartable
    return error


def _log_recovery(started: StartedAttempt, recovered: Recovered) -> None:
    if recovered.restored is not None:
        log.debug("attempt %d: restored checkpoint %d", started.attempt, recovered.restored.checkpoint_id)
    for item in recovered.settled:
        log.debug("transaction %s: %s (%s)", item.committable.name, item.outcome.value, item.evidence)
    for name in _shown(recovered.lingering):
        log.debug("lingering transaction %s: aborted", name)


def _warn(said: str | None) -> None:
    if said is not None:
        log.warning(said)


def _log_idle(assigned: Sequence[Sequence[Split]]) -> None:
    if idle := sum(not splits for splits in assigned):
        log.warning("%d of %d subtasks read nothing: splits to read: %d", idle, len(assigned), sum(map(len, assigned)))


def _shown(names: Sequence[str], most: int = 20) -> list[str]:
    rest = len(names) - most
    return [*names[:most], *([f"and {rest} more"] if rest > 0 else [])]
