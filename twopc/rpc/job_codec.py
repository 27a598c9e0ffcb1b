"""What a job's driver and its coordinator tell each other, to its wire form and back; total both ways.

What can't be decoded raises ProtocolViolation.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TypeVar

from twopc.errors import ProtocolViolation
from twopc.protocol.attempts import CheckpointSettings, Traces
from twopc.protocol.canonical import canonical
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_events import JobEvent
from twopc.protocol.messages import Progress
from twopc.rpc import control_pb2 as pb

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


def encode_event(event: JobEvent) -> pb.JobEvent:
    return pb.JobEvent(
        job=event.job,
        attempt=event.attempt,
        kind=event.kind,
        checkpoint_id=event.checkpoint_id,
        subtask=event.subtask,
        message=event.message,
        restartable=event.restartable,
        error_type=event.error_type,
        time_ms=event.time_ms,
        duration_ms=event.duration_ms,
        pid=event.pid,
        progress=None if event.progress is None else encode_progress(event.progress),
        pause_ms=event.pause_ms,
        checkpoint_kind=event.checkpoint_kind or "",
        label=event.label,
        request_id=event.request_id,
        reason=event.reason or "",
    )


def decode_event(wire: pb.JobEvent) -> JobEvent:
    return JobEvent(
        kind=wire.kind,
        job=wire.job,
        attempt=AttemptId(wire.attempt),
        time_ms=wire.time_ms,
        checkpoint_id=CheckpointId(wire.checkpoint_id),
        subtask=SubtaskIndex(wire.subtask),
        message=wire.message,
        restartable=wire.restartable,
        error_type=wire.error_type,
        duration_ms=wire.duration_ms,
        pid=wire.pid,
        progress=decode_progress(wire.progress) if wire.HasField("progress") else None,
        pause_ms=wire.pause_ms,
        checkpoint_kind=_member(CheckpointKind, wire.checkpoint_kind),
        label=wire.label,
        request_id=wire.request_id,
        reason=_member(FailureReason, wire.reason),
    )


def encode_settings(settings: CheckpointSettings) -> pb.CheckpointSettings:
    return pb.CheckpointSettings(**to_json(settings))


def decode_settings(wire: pb.CheckpointSettings) -> CheckpointSettings:
    return CheckpointSettings(
        interval_ms=wire.interval_ms,
        timeout_ms=wire.timeout_ms,
        min_pause_ms=wire.min_pause_ms,
        max_concurrent=wire.max_concurrent,
        tolerable_failures=wire.tolerable_failures,
        retained=wire.retained,
    )


def encode_traces(traces: Traces) -> pb.Traces:
    return pb.Traces(claimed=traces.claimed, written=traces.written, open=traces.open)


def decode_traces(wire: pb.Traces) -> Traces:
    return Traces(AttemptId(wire.claimed), AttemptId(wire.written), AttemptId(wire.open))


def encode_value(value: object | None) -> bytes:
    """Nothing becomes no bytes."""
    return b"" if value is None else canonical(to_json(value))


def decode_value(kind: type[T], data: bytes) -> T | None:
    """Return what `encode_value` was given; raise ProtocolViolation."""
    if not data:
        return None
    try:
        return from_json(kind, json.loads(data))
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"the other side sent a {kind.__name__} that can't be read: {error}") from error


def _member(kind: type[E], name: str) -> E | None:
    """The member of a closed set with this name; no name is none."""
    try:
        return kind(name) if name else None
    except ValueError as error:
        raise ProtocolViolation(f"the coordinator sent {name!r}, which is no {kind.__name__}") from error


def encode_progress(progress: Progress) -> pb.Progress:
    return pb.Progress(
        records_in=progress.records_in,
        records_out=progress.records_out,
        lag=progress.lag,
        open_transaction=progress.open_transaction or "",
        pending_transactions=progress.pending_transactions,
        slow=progress.slow,
    )


def decode_progress(wire: pb.Progress) -> Progress:
    return Progress(
        records_in=wire.records_in,
        records_out=wire.records_out,
        lag=wire.lag if wire.HasField("lag") else None,
        open_transaction=wire.open_transaction or None,
        pending_transactions=tuple(wire.pending_transactions),
        slow=wire.slow,
    )
