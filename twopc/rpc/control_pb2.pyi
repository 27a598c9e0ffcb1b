from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Attach(_message.Message):
    __slots__ = ("job", "attempt", "subtask", "pid", "host", "last_checkpoint_id", "end_of_input", "heartbeat_timeout_ms")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SUBTASK_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    LAST_CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    END_OF_INPUT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    job: str
    attempt: int
    subtask: int
    pid: int
    host: str
    last_checkpoint_id: int
    end_of_input: bool
    heartbeat_timeout_ms: int
    def __init__(self, job: _Optional[str] = ..., attempt: _Optional[int] = ..., subtask: _Optional[int] = ..., pid: _Optional[int] = ..., host: _Optional[str] = ..., last_checkpoint_id: _Optional[int] = ..., end_of_input: _Optional[bool] = ..., heartbeat_timeout_ms: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("checkpoint_id", "snapshot_json", "pause_ms", "store_ms", "pre_commit_ms", "write_ms", "times")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_JSON_FIELD_NUMBER: _ClassVar[int]
    PAUSE_MS_FIELD_NUMBER: _ClassVar[int]
    STORE_MS_FIELD_NUMBER: _ClassVar[int]
    PRE_COMMIT_MS_FIELD_NUMBER: _ClassVar[int]
    WRITE_MS_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    snapshot_json: bytes
    pause_ms: float
    store_ms: float
    pre_commit_ms: float
    write_ms: float
    times: _containers.RepeatedCompositeFieldContainer[NumberTimes]
    def __init__(self, checkpoint_id: _Optional[int] = ..., snapshot_json: _Optional[bytes] = ..., pause_ms: _Optional[float] = ..., store_ms: _Optional[float] = ..., pre_commit_ms: _Optional[float] = ..., write_ms: _Optional[float] = ..., times: _Optional[_Iterable[_Union[NumberTimes, _Mapping]]] = ...) -> None: ...

class NumberTimes(_message.Message):
    __slots__ = ("operator", "least", "greatest", "holds", "rests", "resting")
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    LEAST_FIELD_NUMBER: _ClassVar[int]
    GREATEST_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    RESTS_FIELD_NUMBER: _ClassVar[int]
    RESTING_FIELD_NUMBER: _ClassVar[int]
    operator: str
    least: int
    greatest: int
    holds: bool
    rests: bool
    resting: int
    def __init__(self, operator: _Optional[str] = ..., least: _Optional[int] = ..., greatest: _Optional[int] = ..., holds: _Optional[bool] = ..., rests: _Optional[bool] = ..., resting: _Optional[int] = ...) -> None: ...

class FollowedTime(_message.Message):
    __slots__ = ("operator", "time")
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    operator: str
    time: int
    def __init__(self, operator: _Optional[str] = ..., time: _Optional[int] = ...) -> None: ...

class Decline(_message.Message):
    __slots__ = ("checkpoint_id", "reason")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    reason: str
    def __init__(self, checkpoint_id: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Committed(_message.Message):
    __slots__ = ("checkpoint_id",)
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    def __init__(self, checkpoint_id: _Optional[int] = ...) -> None: ...

class EndOfInput(_message.Message):
    __slots__ = ("stage", "following")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    FOLLOWING_FIELD_NUMBER: _ClassVar[int]
    stage: int
    following: int
    def __init__(self, stage: _Optional[int] = ..., following: _Optional[int] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("error_type", "message", "restartable")
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RESTARTABLE_FIELD_NUMBER: _ClassVar[int]
    error_type: str
    message: str
    restartable: bool
    def __init__(self, error_type: _Optional[str] = ..., message: _Optional[str] = ..., restartable: _Optional[bool] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("records_in", "records_out", "lag", "open_transaction", "pending_transactions", "slow", "new_record_errors", "figures_json")
    RECORDS_IN_FIELD_NUMBER: _ClassVar[int]
    RECORDS_OUT_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    OPEN_TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    PENDING_TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    SLOW_FIELD_NUMBER: _ClassVar[int]
    NEW_RECORD_ERRORS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_JSON_FIELD_NUMBER: _ClassVar[int]
    records_in: int
    records_out: int
    lag: int
    open_transaction: str
    pending_transactions: _containers.RepeatedScalarFieldContainer[str]
    slow: str
    new_record_errors: _containers.RepeatedCompositeFieldContainer[RecordErrorKind]
    figures_json: bytes
    def __init__(self, records_in: _Optional[int] = ..., records_out: _Optional[int] = ..., lag: _Optional[int] = ..., open_transaction: _Optional[str] = ..., pending_transactions: _Optional[_Iterable[str]] = ..., slow: _Optional[str] = ..., new_record_errors: _Optional[_Iterable[_Union[RecordErrorKind, _Mapping]]] = ..., figures_json: _Optional[bytes] = ...) -> None: ...

class RecordErrorKind(_message.Message):
    __slots__ = ("source", "operator", "error_type", "message")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    source: str
    operator: str
    error_type: str
    message: str
    def __init__(self, source: _Optional[str] = ..., operator: _Optional[str] = ..., error_type: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class FromSubtask(_message.Message):
    __slots__ = ("attach", "ack", "decline", "committed", "end_of_input", "failed", "progress")
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    DECLINE_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    END_OF_INPUT_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    attach: Attach
    ack: Ack
    decline: Decline
    committed: Committed
    end_of_input: EndOfInput
    failed: Failed
    progress: Progress
    def __init__(self, attach: _Optional[_Union[Attach, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., decline: _Optional[_Union[Decline, _Mapping]] = ..., committed: _Optional[_Union[Committed, _Mapping]] = ..., end_of_input: _Optional[_Union[EndOfInput, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ...) -> None: ...

class Trigger(_message.Message):
    __slots__ = ("checkpoint_id", "final", "times")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    final: bool
    times: _containers.RepeatedCompositeFieldContainer[FollowedTime]
    def __init__(self, checkpoint_id: _Optional[int] = ..., final: _Optional[bool] = ..., times: _Optional[_Iterable[_Union[FollowedTime, _Mapping]]] = ...) -> None: ...

class Complete(_message.Message):
    __slots__ = ("checkpoint_id",)
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    def __init__(self, checkpoint_id: _Optional[int] = ...) -> None: ...

class Abort(_message.Message):
    __slots__ = ("checkpoint_id", "reason")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: int
    reason: str
    def __init__(self, checkpoint_id: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Welcome(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FencedOff(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("stage",)
    STAGE_FIELD_NUMBER: _ClassVar[int]
    stage: int
    def __init__(self, stage: _Optional[int] = ...) -> None: ...

class ToSubtask(_message.Message):
    __slots__ = ("trigger", "complete", "abort", "finish", "fenced_off", "welcome", "drain")
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    ABORT_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    FENCED_OFF_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    trigger: Trigger
    complete: Complete
    abort: Abort
    finish: Finish
    fenced_off: FencedOff
    welcome: Welcome
    drain: Drain
    def __init__(self, trigger: _Optional[_Union[Trigger, _Mapping]] = ..., complete: _Optional[_Union[Complete, _Mapping]] = ..., abort: _Optional[_Union[Abort, _Mapping]] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ..., fenced_off: _Optional[_Union[FencedOff, _Mapping]] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ...) -> None: ...

class AskRequest(_message.Message):
    __slots__ = ("job", "request_json")
    JOB_FIELD_NUMBER: _ClassVar[int]
    REQUEST_JSON_FIELD_NUMBER: _ClassVar[int]
    job: str
    request_json: bytes
    def __init__(self, job: _Optional[str] = ..., request_json: _Optional[bytes] = ...) -> None: ...

class AskResponse(_message.Message):
    __slots__ = ("answer_json",)
    ANSWER_JSON_FIELD_NUMBER: _ClassVar[int]
    answer_json: bytes
    def __init__(self, answer_json: _Optional[bytes] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class JobEvents(_message.Message):
    __slots__ = ("events_json",)
    EVENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    events_json: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, events_json: _Optional[_Iterable[bytes]] = ...) -> None: ...
