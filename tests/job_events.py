"""Events of a job, of which a test says no more than it is about."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from twopc import events
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.messages import Progress
from twopc.protocol.record_errors import RecordErrorKind

E = TypeVar("E", bound=events.JobEvent)

_PLAIN: dict[str, Any] = {
    "job": "flights",
    "attempt": 1,
    "time_ms": 0,
    "subtask": 0,
    "checkpoint_id": 1,
    "restored": 0,
    "restart": False,
    "kind": CheckpointKind.PERIODIC,
    "label": "",
    "request_id": "",
    "reason": FailureReason.CHECKPOINT_DECLINED,
    "message": "",
    "error_type": "",
    "restartable": False,
    "duration_ms": 0.0,
    "pause_ms": 0.0,
    "pid": 1,
    "host": "here",
    "progress": Progress(records_in=0, records_out=0, lag=None, open_transaction=None),
    "error": RecordErrorKind("orders", "map(priced)", "KeyError", "record orders[0]@7: map(priced) failed"),
    "starts": "",
    "parallelism": 1,
    "after": 0,
    "split": "in[0]",
    "splits": "",
    "transaction": "t",
}


def event(event_type: type[E], **details: Any) -> E:
    """Return an event of this class with these fields, the others plain."""
    return event_type(**{each.name: _PLAIN[each.name] for each in fields(event_type)} | details)
