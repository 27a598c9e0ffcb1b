from __future__ import annotations

from twopc.faults.driver import decode, encode
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_events import JobEvent, JobEventKind
from twopc.protocol.messages import Progress


def test_an_event_comes_back_as_a_timeline_needs_it() -> None:
    progress = Progress(records_in=7, records_out=5, lag=None, open_transaction="t-1", pending_transactions=("t-0",))
    event = JobEvent(
        kind=JobEventKind.PROGRESS,
        job="orders",
        attempt=AttemptId(2),
        time_ms=1_700_000_000_000,
        checkpoint_id=CheckpointId(3),
        subtask=SubtaskIndex(1),
        message="a\nb",
        duration_ms=1.5,
        pause_ms=0.5,
        pid=42,
        progress=progress,
    )
    assert encode(event).count("\n") == 1
    assert decode(encode(event)) == event
