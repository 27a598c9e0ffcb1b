from twopc.rpc import control_pb2 as _control_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CheckpointSettings(_message.Message):
    __slots__ = ("interval_ms", "timeout_ms", "min_pause_ms", "max_concurrent", "tolerable_failures", "retained")
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_PAUSE_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    TOLERABLE_FAILURES_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    interval_ms: int
    timeout_ms: int
    min_pause_ms: int
    max_concurrent: int
    tolerable_failures: int
    retained: int
    def __init__(self, interval_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., min_pause_ms: _Optional[int] = ..., max_concurrent: _Optional[int] = ..., tolerable_failures: _Optional[int] = ..., retained: _Optional[int] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[JobSummary]
    def __init__(self, jobs: _Optional[_Iterable[_Union[JobSummary, _Mapping]]] = ...) -> None: ...

class JobSummary(_message.Message):
    __slots__ = ("job", "phase", "problem", "attempt", "parallelism", "attached", "newest_checkpoint_id", "newest_completed_ms", "record_errors")
    JOB_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PARALLELISM_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    NEWEST_CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    NEWEST_COMPLETED_MS_FIELD_NUMBER: _ClassVar[int]
    RECORD_ERRORS_FIELD_NUMBER: _ClassVar[int]
    job: str
    phase: str
    problem: str
    attempt: int
    parallelism: int
    attached: int
    newest_checkpoint_id: int
    newest_completed_ms: int
    record_errors: int
    def __init__(self, job: _Optional[str] = ..., phase: _Optional[str] = ..., problem: _Optional[str] = ..., attempt: _Optional[int] = ..., parallelism: _Optional[int] = ..., attached: _Optional[int] = ..., newest_checkpoint_id: _Optional[int] = ..., newest_completed_ms: _Optional[int] = ..., record_errors: _Optional[int] = ...) -> None: ...

class DescribeJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class JobDescription(_message.Message):
    __slots__ = ("job", "phase", "problem", "attempt", "parallelism", "settings", "restored", "started_ms", "stop_requested", "subtasks", "in_flight", "queued", "kept", "failures", "completed", "failed", "input_notes")
    JOB_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PARALLELISM_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    STOP_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    SUBTASKS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    INPUT_NOTES_FIELD_NUMBER: _ClassVar[int]
    job: str
    phase: str
    problem: str
    attempt: int
    parallelism: int
    settings: CheckpointSettings
    restored: int
    started_ms: int
    stop_requested: bool
    subtasks: _containers.RepeatedCompositeFieldContainer[SubtaskDescription]
    in_flight: _containers.RepeatedCompositeFieldContainer[CheckpointInFlight]
    queued: _containers.RepeatedCompositeFieldContainer[QueuedRequest]
    kept: _containers.RepeatedCompositeFieldContainer[KeptCheckpoint]
    failures: _containers.RepeatedCompositeFieldContainer[FailedCheckpoint]
    completed: int
    failed: int
    input_notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job: _Optional[str] = ..., phase: _Optional[str] = ..., problem: _Optional[str] = ..., attempt: _Optional[int] = ..., parallelism: _Optional[int] = ..., settings: _Optional[_Union[CheckpointSettings, _Mapping]] = ..., restored: _Optional[int] = ..., started_ms: _Optional[int] = ..., stop_requested: _Optional[bool] = ..., subtasks: _Optional[_Iterable[_Union[SubtaskDescription, _Mapping]]] = ..., in_flight: _Optional[_Iterable[_Union[CheckpointInFlight, _Mapping]]] = ..., queued: _Optional[_Iterable[_Union[QueuedRequest, _Mapping]]] = ..., kept: _Optional[_Iterable[_Union[KeptCheckpoint, _Mapping]]] = ..., failures: _Optional[_Iterable[_Union[FailedCheckpoint, _Mapping]]] = ..., completed: _Optional[int] = ..., failed: _Optional[int] = ..., input_notes: _Optional[_Iterable[str]] = ...) -> None: ...

class SubtaskDescription(_message.Message):
    __slots__ = ("subtask", "attached", "at_end", "pid", "host", "progress", "committed")
    SUBTASK_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    AT_END_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    subtask: int
    attached: bool
    at_end: bool
    pid: int
    host: str
    progress: _control_pb2.Progress
    committed: int
    def __init__(self, subtask: _Optional[int] = ..., attached: _Optional[bool] = ..., at_end: _Optional[bool] = ..., pid: _Optional[int] = ..., host: _Optional[str] = ..., progress: _Optional[_Union[_control_pb2.Progress, _Mapping]] = ..., committed: _Optional[int] = ...) -> None: ...

class CheckpointInFlight(_message.Message):
    __slots__ = ("checkpoint_id", "kind", "label", "request_id", "triggered_ms", "acknowledged")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TRIGGERED_MS_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    kind: str
    label: str
    request_id: str
    triggered_ms: int
    acknowledged: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, checkpoint_id: _Optional[int] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., request_id: _Optional[str] = ..., triggered_ms: _Optional[int] = ..., acknowledged: _Optional[_Iterable[int]] = ...) -> None: ...

class QueuedRequest(_message.Message):
    __slots__ = ("kind", "label", "request_id", "asked_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ASKED_MS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    label: str
    request_id: str
    asked_ms: int
    def __init__(self, kind: _Optional[str] = ..., label: _Optional[str] = ..., request_id: _Optional[str] = ..., asked_ms: _Optional[int] = ...) -> None: ...

class KeptCheckpoint(_message.Message):
    __slots__ = ("checkpoint_id", "attempt", "kind", "label", "triggered_ms", "completed_ms", "size_bytes", "outstanding", "globally_outstanding")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    TRIGGERED_MS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_MS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTSTANDING_FIELD_NUMBER: _ClassVar[int]
    GLOBALLY_OUTSTANDING_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    attempt: int
    kind: str
    label: str
    triggered_ms: int
    completed_ms: int
    size_bytes: int
    outstanding: _containers.RepeatedScalarFieldContainer[str]
    globally_outstanding: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, checkpoint_id: _Optional[int] = ..., attempt: _Optional[int] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., triggered_ms: _Optional[int] = ..., completed_ms: _Optional[int] = ..., size_bytes: _Optional[int] = ..., outstanding: _Optional[_Iterable[str]] = ..., globally_outstanding: _Optional[_Iterable[str]] = ...) -> None: ...

class FailedCheckpoint(_message.Message):
    __slots__ = ("checkpoint_id", "attempt", "kind", "label", "request_id", "reason", "message", "time_ms")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    attempt: int
    kind: str
    label: str
    request_id: str
    reason: str
    message: str
    time_ms: int
    def __init__(self, checkpoint_id: _Optional[int] = ..., attempt: _Optional[int] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., request_id: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., time_ms: _Optional[int] = ...) -> None: ...

class SubtasksRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class SubtasksResponse(_message.Message):
    __slots__ = ("attempt", "subtasks")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SUBTASKS_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    subtasks: _containers.RepeatedCompositeFieldContainer[SubtaskDescription]
    def __init__(self, attempt: _Optional[int] = ..., subtasks: _Optional[_Iterable[_Union[SubtaskDescription, _Mapping]]] = ...) -> None: ...

class TriggerCheckpointRequest(_message.Message):
    __slots__ = ("job", "kind", "label", "request_id")
    JOB_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    job: str
    kind: str
    label: str
    request_id: str
    def __init__(self, job: _Optional[str] = ..., kind: _Optional[str] = ..., label: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class TriggerCheckpointResponse(_message.Message):
    __slots__ = ("completed", "checkpoint_id", "reason", "message", "duration_ms", "request_id")
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    completed: bool
    checkpoint_id: int
    reason: str
    message: str
    duration_ms: float
    request_id: str
    def __init__(self, completed: _Optional[bool] = ..., checkpoint_id: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., duration_ms: _Optional[float] = ..., request_id: _Optional[str] = ...) -> None: ...

class StopJobRequest(_message.Message):
    __slots__ = ("job", "savepoint", "label", "drain")
    JOB_FIELD_NUMBER: _ClassVar[int]
    SAVEPOINT_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    job: str
    savepoint: bool
    label: str
    drain: bool
    def __init__(self, job: _Optional[str] = ..., savepoint: _Optional[bool] = ..., label: _Optional[str] = ..., drain: _Optional[bool] = ...) -> None: ...

class StopJobResponse(_message.Message):
    __slots__ = ("finished", "checkpoint_id", "message")
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    finished: bool
    checkpoint_id: int
    message: str
    def __init__(self, finished: _Optional[bool] = ..., checkpoint_id: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class RescaleRequest(_message.Message):
    __slots__ = ("job", "parallelism")
    JOB_FIELD_NUMBER: _ClassVar[int]
    PARALLELISM_FIELD_NUMBER: _ClassVar[int]
    job: str
    parallelism: int
    def __init__(self, job: _Optional[str] = ..., parallelism: _Optional[int] = ...) -> None: ...

class RescaleResponse(_message.Message):
    __slots__ = ("attempt", "before", "restored")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    before: int
    restored: int
    def __init__(self, attempt: _Optional[int] = ..., before: _Optional[int] = ..., restored: _Optional[int] = ...) -> None: ...

class DisposeCheckpointRequest(_message.Message):
    __slots__ = ("job", "checkpoint_id")
    JOB_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    job: str
    checkpoint_id: int
    def __init__(self, job: _Optional[str] = ..., checkpoint_id: _Optional[int] = ...) -> None: ...

class DisposeCheckpointResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
