from __future__ import annotations

from tests.job_events import event
from twopc import events
from twopc.faults.driver import decode, encode
from twopc.protocol.messages import Progress


def test_an_event_comes_back_as_a_timeline_needs_it() -> None:
    progress = Progress(records_in=7, records_out=5, lag=None, open_transaction="t-1", pending_transactions=("t-0",))
    said = event(events.SubtaskProgress, job="a\nb", time_ms=1_700_000_000_000, progress=progress)
    assert encode(said).count("\n") == 1
    assert decode(encode(said)) == said
