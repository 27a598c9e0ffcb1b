"""What operators are told, to its wire form and back. What can't be decoded raises ProtocolViolation."""

from __future__ import annotations

from twopc.errors import ProtocolViolation
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_description import (
    CheckpointInFlight,
    FailedCheckpoint,
    JobDescription,
    KeptCheckpoint,
    QueuedRequest,
    SubtaskDescription,
)
from twopc.rpc import admin_pb2 as pb
from twopc.rpc.job_codec import decode_progress, decode_settings, encode_progress, encode_settings
from twopc.rpc.redaction import redact


def encode_description(job: JobDescription) -> pb.JobDescription:
    return pb.JobDescription(
        job=job.job,
        phase=job.phase,
        problem=redact(job.problem),
        attempt=job.attempt,
        parallelism=job.parallelism,
        settings=None if job.settings is None else encode_settings(job.settings),
        restored_checkpoint_id=job.restored,
        started_ms=job.started_ms,
        stop_requested=job.stop_requested,
        subtasks=[encode_subtask(each) for each in job.subtasks],
        in_flight=[_encode_in_flight(each) for each in job.in_flight],
        queued=[_encode_queued(each) for each in job.queued],
        kept=[_encode_kept(each) for each in job.kept],
        failures=[_encode_failed(each) for each in job.failures],
        completed_count=job.completed,
        failed_count=job.failed,
    )


def decode_description(wire: pb.JobDescription) -> JobDescription:
    try:
        return JobDescription(
            job=wire.job,
            phase=wire.phase,
            problem=wire.problem,
            attempt=AttemptId(wire.attempt),
            parallelism=wire.parallelism,
            settings=decode_settings(wire.settings) if wire.HasField("settings") else None,
            restored=CheckpointId(wire.restored_checkpoint_id),
            started_ms=wire.started_ms,
            stop_requested=wire.stop_requested,
            subtasks=tuple(decode_subtask(each) for each in wire.subtasks),
            in_flight=tuple(_decode_in_flight(each) for each in wire.in_flight),
            queued=tuple(_decode_queued(each) for each in wire.queued),
            kept=tuple(_decode_kept(each) for each in wire.kept),
            failures=tuple(_decode_failed(each) for each in wire.failures),
            completed=wire.completed_count,
            failed=wire.failed_count,
        )
    except ValueError as error:
        raise ProtocolViolation("the coordinator described a job in words that are not known here") from error


def encode_subtask(subtask: SubtaskDescription) -> pb.SubtaskDescription:
    return pb.SubtaskDescription(
        subtask=subtask.subtask,
        attached=subtask.attached,
        at_end=subtask.at_end,
        pid=subtask.pid,
        host=subtask.host,
        progress=None if subtask.progress is None else encode_progress(subtask.progress),
        committed_checkpoint_id=subtask.committed,
    )


def decode_subtask(wire: pb.SubtaskDescription) -> SubtaskDescription:
    return SubtaskDescription(
        subtask=SubtaskIndex(wire.subtask),
        attached=wire.attached,
        at_end=wire.at_end,
        pid=wire.pid,
        host=wire.host,
        progress=decode_progress(wire.progress) if wire.HasField("progress") else None,
        committed=CheckpointId(wire.committed_checkpoint_id),
    )


def _encode_in_flight(checkpoint: CheckpointInFlight) -> pb.CheckpointInFlight:
    return pb.CheckpointInFlight(
        checkpoint_id=checkpoint.checkpoint_id,
        kind=checkpoint.kind,
        label=checkpoint.label,
        request_id=checkpoint.request_id,
        triggered_ms=checkpoint.triggered_ms,
        acknowledged=checkpoint.acknowledged,
    )


def _decode_in_flight(wire: pb.CheckpointInFlight) -> CheckpointInFlight:
    return CheckpointInFlight(
        checkpoint_id=CheckpointId(wire.checkpoint_id),
        kind=CheckpointKind(wire.kind),
        label=wire.label,
        request_id=wire.request_id,
        triggered_ms=wire.triggered_ms,
        acknowledged=tuple(SubtaskIndex(subtask) for subtask in wire.acknowledged),
    )


def _encode_queued(request: QueuedRequest) -> pb.QueuedRequest:
    return pb.QueuedRequest(
        kind=request.kind, label=request.label, request_id=request.request_id, asked_ms=request.asked_ms
    )


def _decode_queued(wire: pb.QueuedRequest) -> QueuedRequest:
    return QueuedRequest(CheckpointKind(wire.kind), wire.label, wire.request_id, wire.asked_ms)


def _encode_kept(checkpoint: KeptCheckpoint) -> pb.KeptCheckpoint:
    return pb.KeptCheckpoint(
        checkpoint_id=checkpoint.checkpoint_id,
        attempt=checkpoint.attempt,
        kind=checkpoint.kind,
        label=checkpoint.label,
        triggered_ms=checkpoint.triggered_ms,
        completed_ms=checkpoint.completed_ms,
        size_bytes=checkpoint.size_bytes,
        outstanding=checkpoint.outstanding,
        globally_outstanding=checkpoint.globally_outstanding,
    )


def _decode_kept(wire: pb.KeptCheckpoint) -> KeptCheckpoint:
    return KeptCheckpoint(
        checkpoint_id=CheckpointId(wire.checkpoint_id),
        attempt=AttemptId(wire.attempt),
        kind=CheckpointKind(wire.kind),
        label=wire.label,
        triggered_ms=wire.triggered_ms,
        completed_ms=wire.completed_ms,
        size_bytes=wire.size_bytes,
        outstanding=tuple(wire.outstanding),
        globally_outstanding=tuple(wire.globally_outstanding),
    )


def _encode_failed(checkpoint: FailedCheckpoint) -> pb.FailedCheckpoint:
    return pb.FailedCheckpoint(
        checkpoint_id=checkpoint.checkpoint_id,
        attempt=checkpoint.attempt,
        kind=checkpoint.kind,
        label=checkpoint.label,
        request_id=checkpoint.request_id,
        reason=checkpoint.reason,
        message=redact(checkpoint.message),
        time_ms=checkpoint.time_ms,
    )


def _decode_failed(wire: pb.FailedCheckpoint) -> FailedCheckpoint:
    return FailedCheckpoint(
        checkpoint_id=CheckpointId(wire.checkpoint_id),
        attempt=AttemptId(wire.attempt),
        kind=CheckpointKind(wire.kind),
        label=wire.label,
        request_id=wire.request_id,
        reason=FailureReason(wire.reason),
        message=wire.message,
        time_ms=wire.time_ms,
    )
