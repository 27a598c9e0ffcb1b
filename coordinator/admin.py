"""The operators' part of the gRPC edge: see jobs, take a checkpoint, stop a job.

A call that waits for an outcome watches the job from the very step in which it asks, so that it can't miss it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import grpc

from coordinator.access import Limits
from coordinator.jobs import Jobs
from coordinator.loop import Loop, LoopClient, abort_with
from coordinator.rescaling import rescaled
from coordinator.sessions import Channel, Sessions
from coordinator.status import Phase
from twopc import events
from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.protocol.checkpoints import CheckpointKind, checked_label
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, checked_name
from twopc.protocol.job_description import JobDescription
from twopc.protocol.requests import DisposeCheckpoint, Rescale, StopJob, TriggerCheckpoint
from twopc.rpc import admin_pb2 as pb
from twopc.rpc.admin_pb2_grpc import AdminServicer
from twopc.rpc.fields import encode
from twopc.rpc.redaction import redact

LONGEST_WAIT_SECONDS = 86_400.0

_Outcome = events.CheckpointCompleted | events.CheckpointAborted

_ASKED_FOR = {str(kind): kind for kind in (CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT)}


class AdminService(AdminServicer):
    """The service for operators."""

    def __init__(self, loop: Loop, sessions: Sessions, limits: Limits) -> None:
        self._sessions = sessions
        self._client = LoopClient(loop, limits)
        self._most_subtasks = limits.streams

    def ListJobs(self, request: pb.ListJobsRequest, context: grpc.ServicerContext) -> pb.ListJobsResponse:  # noqa: N802
        try:
            names = self._client.ask(Jobs.names, context)
            # One question a job: the first look at a job reads its ledger, and checkpoints go on in between.
            return pb.ListJobsResponse(jobs=[self._summary(name, context) for name in names])
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)

    def DescribeJob(self, request: pb.DescribeJobRequest, context: grpc.ServicerContext) -> pb.JobDescription:  # noqa: N802
        try:
            return _encode_redacted(self._client.ask(lambda jobs: _described(jobs, request.job), context))
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)

    def Subtasks(self, request: pb.SubtasksRequest, context: grpc.ServicerContext) -> pb.SubtasksResponse:  # noqa: N802
        try:
            job = self._client.ask(lambda jobs: _described(jobs, request.job), context)
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)
        return pb.SubtasksResponse(
            attempt=job.attempt, subtasks=[encode(subtask, pb.SubtaskDescription) for subtask in job.subtasks]
        )

    def TriggerCheckpoint(  # noqa: N802
        self, request: pb.TriggerCheckpointRequest, context: grpc.ServicerContext
    ) -> pb.TriggerCheckpointResponse:
        try:
            request_id = checked_name("request_id", request.request_id) if request.request_id else uuid.uuid4().hex
            asked = _trigger_of(request, request_id)
            with self._outcomes(request.job, lambda jobs: _take(jobs, request.job, asked), context) as channel:
                for event in channel:
                    if isinstance(event, _Outcome) and event.request_id == request_id:
                        return _response_of(event)
            raise Unavailable(f"request {request_id} was not answered in time: the checkpoint may still complete")
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)

    def StopJob(self, request: pb.StopJobRequest, context: grpc.ServicerContext) -> pb.StopJobResponse:  # noqa: N802
        finished_with: CheckpointId | None = None

        def stop(jobs: Jobs) -> None:
            nonlocal finished_with
            if not (request.savepoint or request.drain):
                finished_with = _finished_with(jobs, request.job)
            if finished_with is None:
                running = _running(jobs, request.job, "stopped").attempt
                jobs.request(request.job, StopJob(running, request.savepoint, label, request.drain))

        try:
            label = _label(request.label)
            if label and not request.savepoint:
                raise ConfigurationError("a label names a savepoint: ask for one")
            with self._outcomes(request.job, stop, context) as channel:
                if finished_with is None:
                    return self._await_end(request.job, channel, context)
            return pb.StopJobResponse(finished=True, checkpoint_id=finished_with, message="")
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)

    def _await_end(
        self, name: str, channel: Iterable[events.CoordinatorEvent], context: grpc.ServicerContext
    ) -> pb.StopJobResponse:
        """Return the end of a job that is stopping; raise Unavailable where its events end before."""
        final, how = NO_CHECKPOINT, "it may still end"
        for event in channel:
            if isinstance(event, events.CheckpointCompleted) and event.final:
                final = event.checkpoint_id
            elif isinstance(event, events.AttemptFailed) and event.restartable:
                how = f"an attempt failed ({redact(event.message)}); the next one goes on stopping"
            elif isinstance(event, events.AttemptStarted):
                self._require_still_stopping(name, context)
            elif isinstance(event, events.JobFinished):
                return pb.StopJobResponse(finished=True, checkpoint_id=final, message="")
            elif isinstance(event, events.AttemptFailed | events.AttemptFenced):
                return pb.StopJobResponse(finished=False, checkpoint_id=final, message=redact(event.message))
        raise Unavailable(f"job {name!r} has not ended in time: {how}")

    def _require_still_stopping(self, name: str, context: grpc.ServicerContext) -> None:
        """Raise Unavailable if an attempt that somebody started has forgotten the stop: it will not come."""
        job = self._client.ask(lambda jobs: jobs.describe(name), context)
        if not job.stop_requested:
            raise Unavailable(
                f"job {name!r} did not stop: it was started again meanwhile, as attempt {job.attempt}, which knows "
                "nothing of the stop; ask again to stop that one"
            )

    def Rescale(self, request: pb.RescaleRequest, context: grpc.ServicerContext) -> pb.RescaleResponse:  # noqa: N802
        wanted, request_id = request.parallelism, uuid.uuid4().hex
        before: list[JobDescription] = []

        def rescale(jobs: Jobs) -> None:
            before.append(_running(jobs, request.job, "rescaled"))
            if wanted != before[0].parallelism:
                jobs.request(request.job, Rescale(wanted, request_id))
                # Who asks waits for a checkpoint: not for the next interval's.
                jobs.request(request.job, TriggerCheckpoint(CheckpointKind.MANUAL, "", request_id))

        try:
            if not 1 <= wanted <= self._most_subtasks:
                raise ConfigurationError(f"parallelism is from 1 to {self._most_subtasks} here, not {wanted}")
            with self._outcomes(request.job, rescale, context) as channel:
                [job] = before
                attempt, restored = job.attempt, NO_CHECKPOINT
                if wanted != job.parallelism:
                    events = self._while_wanted(request.job, wanted, channel, context)
                    attempt, restored = rescaled(job.attempt, wanted, request_id, events)
            return pb.RescaleResponse(attempt=attempt, before=job.parallelism, restored=restored)
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)

    def _while_wanted(
        self, name: str, wanted: int, channel: Iterable[events.CoordinatorEvent], context: grpc.ServicerContext
    ) -> Iterator[events.CoordinatorEvent]:
        """Yield events until an attempt starts with another number of subtasks: it has forgotten the wish."""
        for event in channel:
            if isinstance(event, events.AttemptStarted):
                job = self._client.ask(lambda jobs: jobs.describe(name), context)
                if job.parallelism != wanted:
                    raise Unavailable(
                        f"the attempt ended first, and attempt {job.attempt} has {job.parallelism} subtasks again; ask "
                        "again when the job runs"
                    )
            yield event

    def DisposeCheckpoint(  # noqa: N802
        self, request: pb.DisposeCheckpointRequest, context: grpc.ServicerContext
    ) -> pb.DisposeCheckpointResponse:
        def dispose(jobs: Jobs) -> None:
            _described(jobs, request.job)
            jobs.request(request.job, DisposeCheckpoint(CheckpointId(request.checkpoint_id)))

        try:
            self._client.ask(dispose, context)
        except Exception as error:  # noqa: BLE001
            abort_with(context, error)
        return pb.DisposeCheckpointResponse()

    @contextmanager
    def _outcomes(
        self, job: str, action: Callable[[Jobs], None], context: grpc.ServicerContext
    ) -> Iterator[Channel[events.CoordinatorEvent]]:
        """Do the action, and give the events of the job that follow, until the caller's deadline."""
        # gRPC tells of no deadline as of one in centuries.
        remaining = context.time_remaining()
        if remaining is None or remaining > LONGEST_WAIT_SECONDS:
            raise ConfigurationError("the call needs a deadline of at most a day: say how long to wait for the outcome")
        channel = Channel[events.CoordinatorEvent]()
        context.add_callback(channel.close)

        def act(jobs: Jobs) -> None:
            _described(jobs, job)
            self._sessions.watch(job, channel)
            action(jobs)

        try:
            self._client.ask(act, context)
            yield channel
        finally:
            self._sessions.unwatch(channel)

    def _summary(self, name: str, context: grpc.ServicerContext) -> pb.JobSummary:
        try:
            job = self._client.ask(lambda jobs: jobs.describe(name), context)
        except TwoPhaseCommitError as error:
            return pb.JobSummary(job=name, phase="unreadable", problem=redact(str(error)))
        newest = job.kept[-1] if job.kept else None
        return pb.JobSummary(
            job=job.job,
            phase=job.phase,
            problem=redact(job.problem),
            attempt=job.attempt,
            parallelism=job.parallelism,
            attached=sum(subtask.attached for subtask in job.subtasks),
            newest_checkpoint_id=newest.checkpoint_id if newest else NO_CHECKPOINT,
            newest_completed_ms=newest.completed_ms if newest else 0,
            record_errors=sum(count.total for count in job.record_errors),
        )


def _described(jobs: Jobs, name: str) -> JobDescription:
    """The job, if there is one: looking at a name doesn't make a job of it."""
    known = jobs.names()
    if name not in known:
        raise ConfigurationError(
            f"there is no job {checked_name('job', name)!r} here; there are: {', '.join(known) or 'none'}"
        )
    return jobs.describe(name)


def _finished_with(jobs: Jobs, name: str) -> CheckpointId | None:
    """The last checkpoint of a job that has ended in order: a stop that comes then has its result."""
    status = jobs.status(name)
    finished = [event for event in status if isinstance(event, events.JobFinished)]
    return finished[0].checkpoint_id if finished else None


def _take(jobs: Jobs, name: str, asked: TriggerCheckpoint) -> None:
    _refuse_between_attempts(jobs, name, f"no {asked.kind} of job {name!r} can be taken")
    jobs.request(name, asked)


def _refuse_between_attempts(jobs: Jobs, name: str, refused: str) -> None:
    """Raise Unavailable where the attempt has failed, or its driver has ended it, and another one may follow."""
    job, status = jobs.describe(name), jobs.status(name)
    is_ended = job.phase == Phase.ENDED.value and not any(isinstance(each, events.JobFinished) for each in status)
    if is_ended or any(isinstance(each, events.AttemptFailed) and each.restartable for each in status):
        raise Unavailable(
            f"{refused} now: attempt {job.attempt} has ended ({redact(job.problem)}) and no other one has begun: ask "
            "again when the job runs (twopc jobs show tells)"
        )


def _running(jobs: Jobs, name: str, wanted: str) -> JobDescription:
    job = _described(jobs, name)
    _refuse_between_attempts(jobs, name, f"job {name!r} can't be {wanted}")
    if job.problem or not job.attempt:
        raise ConfigurationError(f"job {name!r} can't be {wanted}: {job.problem or 'it has never been started'}")
    return job


def _trigger_of(request: pb.TriggerCheckpointRequest, request_id: str) -> TriggerCheckpoint:
    if request.kind not in _ASKED_FOR:
        raise ConfigurationError(f"kind {request.kind!r} can't be asked for: give {' or '.join(sorted(_ASKED_FOR))}")
    return TriggerCheckpoint(_ASKED_FOR[request.kind], _label(request.label), request_id)


def _label(label: str) -> str:
    return checked_label(label) if label else ""


def _response_of(event: _Outcome) -> pb.TriggerCheckpointResponse:
    answer = pb.TriggerCheckpointResponse(checkpoint_id=event.checkpoint_id, request_id=event.request_id)
    match event:
        case events.CheckpointCompleted():
            answer.completed, answer.duration_ms = True, event.duration_ms
        case events.CheckpointAborted():
            answer.reason, answer.message = event.reason, redact(event.message)
    return answer


def _encode_redacted(job: JobDescription) -> pb.JobDescription:
    failures = tuple(replace(failure, message=redact(failure.message)) for failure in job.failures)
    notes = tuple(map(redact, job.input_notes))
    return encode(replace(job, problem=redact(job.problem), failures=failures, input_notes=notes), pb.JobDescription)
