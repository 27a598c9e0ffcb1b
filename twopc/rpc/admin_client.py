"""The operator's client of the coordinator: calls that return our values and raise our errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from twopc.errors import ProtocolViolation
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.job_description import JobDescription, SubtaskDescription
from twopc.rpc import admin_pb2 as pb
from twopc.rpc.admin_pb2_grpc import AdminStub
from twopc.rpc.channel import credentials, open_channel
from twopc.rpc.fields import decode
from twopc.rpc.status import error_of
from twopc.rpc.tls import TlsFiles

CALL_SECONDS = 15.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One job in a line. `attempt` and `newest_checkpoint_id` are 0 where there is none.

    `record_errors` are the records of the current attempt that went wrong while it went on.
    """

    job: str
    phase: str
    problem: str
    attempt: AttemptId
    parallelism: int
    attached: int
    newest_checkpoint_id: CheckpointId
    newest_completed_ms: int
    record_errors: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointOutcome:
    """The outcome of a checkpoint that was asked for; `reason` and `message` say why it was aborted."""

    completed: bool
    checkpoint_id: CheckpointId
    reason: FailureReason | None
    message: str
    duration_ms: float
    request_id: str


@dataclass(frozen=True, slots=True)
class StopOutcome:
    """The end of a job that was asked to stop; `message` says why it did not finish."""

    finished: bool
    checkpoint_id: CheckpointId
    message: str


@dataclass(frozen=True, slots=True)
class RescaleOutcome:
    """The attempt that runs with the parallelism that was wanted, and how many subtasks there were before.

    `restored` is the checkpoint that it went on from, 0 where the job ran with so many before.
    """

    attempt: AttemptId
    before: int
    restored: CheckpointId


class AdminClient:
    """Talks to one coordinator; every call has a deadline, and none is repeated.

    `seconds` is how long a call may take that waits for no outcome.
    """

    def __init__(
        self, address: str, *, token: str | None = None, tls: TlsFiles | None = None, seconds: float = CALL_SECONDS
    ) -> None:
        self._address = address
        self._seconds = seconds
        self._metadata = credentials(token)
        self._channel = open_channel(address, tls)
        self._stub = AdminStub(self._channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def jobs(self) -> tuple[JobSummary, ...]:
        """All jobs of this coordinator, by name."""
        answer = self._call(self._stub.ListJobs, pb.ListJobsRequest())
        return tuple(
            JobSummary(
                job=job.job,
                phase=job.phase,
                problem=job.problem,
                attempt=AttemptId(job.attempt),
                parallelism=job.parallelism,
                attached=job.attached,
                newest_checkpoint_id=CheckpointId(job.newest_checkpoint_id),
                newest_completed_ms=job.newest_completed_ms,
                record_errors=job.record_errors,
            )
            for job in answer.jobs
        )

    def describe(self, job: str) -> JobDescription:
        """Describe a job; raise ConfigurationError if there is none of this name."""
        return decode(JobDescription, self._call(self._stub.DescribeJob, pb.DescribeJobRequest(job=job)))

    def subtasks(self, job: str) -> tuple[SubtaskDescription, ...]:
        """The subtasks of the job's current attempt."""
        answer = self._call(self._stub.Subtasks, pb.SubtasksRequest(job=job))
        return tuple(decode(SubtaskDescription, subtask) for subtask in answer.subtasks)

    def checkpoint(
        self, job: str, kind: CheckpointKind, *, label: str = "", request_id: str = "", timeout: float
    ) -> CheckpointOutcome:
        """Take a manual checkpoint or a savepoint; raise Unavailable if its outcome is not known in time."""
        request = pb.TriggerCheckpointRequest(job=job, kind=kind, label=label, request_id=request_id)
        answer = self._call(self._stub.TriggerCheckpoint, request, timeout)
        try:
            reason = FailureReason(answer.reason) if answer.reason else None
        except ValueError as error:
            raise ProtocolViolation(f"the coordinator gave a reason that is not known here: {answer.reason}") from error
        return CheckpointOutcome(
            completed=answer.completed,
            checkpoint_id=CheckpointId(answer.checkpoint_id),
            reason=reason,
            message=answer.message,
            duration_ms=answer.duration_ms,
            request_id=answer.request_id,
        )

    def stop(
        self, job: str, *, savepoint: bool = False, label: str = "", drain: bool = False, timeout: float
    ) -> StopOutcome:
        """Stop a job with a final checkpoint; raise Unavailable if it has not ended in time.

        `savepoint`: that checkpoint is kept. `drain`: first the input is read to the end that it has now.
        """
        request = pb.StopJobRequest(job=job, savepoint=savepoint, label=label, drain=drain)
        answer = self._call(self._stub.StopJob, request, timeout)
        return StopOutcome(answer.finished, CheckpointId(answer.checkpoint_id), answer.message)

    def rescale(self, job: str, parallelism: int, *, timeout: float) -> RescaleOutcome:
        """Have a job go on with so many subtasks; raise ConfigurationError where that can't be.

        Raises Unavailable if they don't run in time, or the attempt failed first: ask again.
        """
        answer = self._call(self._stub.Rescale, pb.RescaleRequest(job=job, parallelism=parallelism), timeout)
        return RescaleOutcome(AttemptId(answer.attempt), answer.before, CheckpointId(answer.restored))

    def dispose(self, job: str, checkpoint_id: CheckpointId) -> None:
        """Let go of a kept checkpoint; raise ConfigurationError, saying why, if a restore may need it."""
        self._call(self._stub.DisposeCheckpoint, pb.DisposeCheckpointRequest(job=job, checkpoint_id=checkpoint_id))

    def _call(self, method: Callable[..., T], request: Any, timeout: float | None = None) -> T:
        try:
            return method(request, timeout=timeout or self._seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise error_of(error, self._address) from None
