"""Arbitrary messages, for round trips."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from hypothesis import strategies as st

from twopc import events
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.facts import (
    CheckpointMetadata,
    Committable,
    SplitPosition,
    StateHandle,
    SubtaskSnapshot,
)
from twopc.protocol.figures import FigureSample
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import (
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    Drain,
    EndOfInput,
    Failed,
    FencedOff,
    Finish,
    Progress,
    ToCoordinator,
    ToSubtask,
    Trigger,
    Welcome,
)
from twopc.protocol.record_errors import RecordErrorKind
from twopc.protocol.times import SubtaskTimes
from twopc.rpc.codec import Attach

checkpoints = st.integers(0, 2**63).map(CheckpointId)
attempts = st.integers(0, 2**63).map(AttemptId)
subtasks = st.integers(0, 2**31 - 1).map(SubtaskIndex)
text = st.text(st.characters(codec="utf-8"), max_size=20)
durations = st.floats(0, 1e9)
payloads = st.dictionaries(text, st.integers() | text | st.booleans() | st.none(), max_size=3)

committables = st.builds(Committable, text, checkpoints, subtasks, payloads)
positions = st.builds(
    SplitPosition,
    text,
    st.integers(0, 1000),
    st.integers(0, 2**63) | text | st.lists(st.integers(0, 2**63) | text, max_size=2) | payloads,
)
items = st.dictionaries(text, st.lists(st.lists(st.none() | text, min_size=2, max_size=2), max_size=3), max_size=3)
states = st.builds(StateHandle, text, text, st.integers(0, 2**63), st.integers(0, 2**63)) | st.builds(
    StateHandle.inline, text, items, st.integers(0, 2**63), st.integers(0, 2**63)
)
snapshots = st.builds(
    SubtaskSnapshot.of,
    subtasks,
    st.lists(positions, max_size=3).map(tuple),
    states,
    st.lists(committables, max_size=3).map(tuple),
    st.booleans(),
)
metadata = st.builds(
    CheckpointMetadata,
    job=text,
    checkpoint_id=checkpoints,
    attempt=attempts,
    parallelism=st.integers(1, 100),
    kind=st.sampled_from(CheckpointKind),
    label=text,
    triggered_ms=st.integers(0, 2**53),
    acknowledged_ms=st.integers(0, 2**53),
    snapshots=st.lists(snapshots, max_size=3).map(tuple),
    times=st.lists(
        st.builds(SubtaskTimes, durations, durations, durations, durations, st.integers(0, 2**53)), max_size=3
    ).map(tuple),
)
stages = st.integers(0, 2**31)
record_error_kinds = st.builds(RecordErrorKind, text, text, text, text)
samples = st.builds(FigureSample, st.lists(text, max_size=2).map(tuple), st.integers(-(2**62), 2**63))
figures = st.dictionaries(text, st.lists(samples, max_size=2).map(tuple), max_size=3)
progress = st.builds(
    Progress,
    st.integers(0, 2**63),
    st.integers(0, 2**63),
    st.none() | st.integers(0, 2**63),
    st.none() | text.filter(bool),
    st.lists(text, max_size=3).map(tuple),
    text,
    st.lists(record_error_kinds, max_size=2).map(tuple),
    st.none() | figures,
)
from_subtask: st.SearchStrategy[ToCoordinator | Attach] = st.one_of(
    st.builds(Attach, text, attempts, subtasks, st.integers(0, 2**31), text, checkpoints, st.booleans()),
    st.builds(Ack, checkpoints, snapshots, durations, durations, durations, durations),
    st.builds(Decline, checkpoints, text),
    st.builds(Committed, checkpoints),
    st.builds(EndOfInput, stages, stages),
    st.builds(Failed, text, text, st.booleans()),
    progress,
)
to_subtask: st.SearchStrategy[ToSubtask] = st.one_of(
    st.builds(Trigger, checkpoints, st.booleans()),
    st.builds(Complete, checkpoints),
    st.builds(Abort, checkpoints, text),
    st.builds(Finish),
    st.builds(Welcome),
    st.builds(FencedOff, text),
    st.builds(Drain, stages),
)
_OF_EVENTS: dict[str, st.SearchStrategy[Any]] = {
    "job": text,
    "attempt": attempts,
    "time_ms": st.integers(0, 2**53),
    "subtask": subtasks,
    "checkpoint_id": checkpoints,
    "restored": checkpoints,
    "after": checkpoints,
    "parallelism": st.integers(1, 2**31),
    "kind": st.sampled_from(CheckpointKind),
    "label": text,
    "request_id": text,
    "reason": st.sampled_from(FailureReason),
    "message": text,
    "error_type": text,
    "restart": st.booleans(),
    "restartable": st.booleans(),
    "duration_ms": durations,
    "pause_ms": durations,
    "pid": st.integers(0, 2**31),
    "host": text,
    "progress": progress,
    "error": record_error_kinds,
}
job_events: st.SearchStrategy[events.CoordinatorEvent] = st.one_of(
    [
        st.builds(kind, **{each.name: _OF_EVENTS[each.name] for each in fields(kind)})
        for kind in get_args(events.CoordinatorEvent)
    ]
)
