"""Jobs as a coordinator describes them, and what is scraped of them."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from twopc.config import RunSettings
from twopc.metrics.jobs import JobMetrics
from twopc.protocol import figures
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_description import CheckpointInFlight, JobDescription, KeptCheckpoint, SubtaskDescription
from twopc.protocol.messages import Progress

IDLE = JobDescription(
    job="flights",
    phase="no attempt",
    problem="",
    attempt=AttemptId(0),
    parallelism=0,
    settings=None,
    restored=CheckpointId(0),
    started_ms=0,
    stop_requested=False,
    subtasks=(),
    in_flight=(),
    queued=(),
    kept=(),
    failures=(),
    completed=0,
    failed=0,
    input_notes=(),
)

PROGRESS = Progress(
    records_in=100,
    records_out=90,
    lag=7,
    open_transaction="t-2",
    pending_transactions=("t-0", "t-1"),
    slow="map(priced) at record orders[0]@7",
    figures=dict(
        (
            figures.RECORDS_IN.by_operator({"orders": 100}),
            figures.RECORDS_OUT.by_operator({"priced": 90}),
            figures.BYTES_IN.by_operator({"orders": 10_000}),
            figures.BYTES_OUT.by_operator({"priced": 900}),
            figures.LATE_RECORDS.by_operator({"per-minute": 4}),
            figures.RECORDS_SKIPPED.of([(("orders", "map(priced)"), 3)]),
            figures.DEAD_LETTERS.of([(("orders", "map(priced)"), 2)]),
            figures.SPLIT_LAG.of([(("orders", "orders-topic[3]"), 3), (("orders", "orders-topic[3]"), 4)]),
            figures.STREAM_TIME.of([(("per-minute", "3"), 1_700_000_000_500)]),
            figures.OLDEST_TRANSACTION.of([((), 1_700_000_000_250)]),
            figures.BUSY_TIME.of([((), 1_500)]),
            figures.OPERATOR_BUSY_TIME.by_operator({"count": 1_200}),
            figures.BATCH_RECORDS.of([((), 64)]),
        )
    ),
)

SUBTASKS = (
    SubtaskDescription(SubtaskIndex(0), True, False, 11, "here", PROGRESS, CheckpointId(6)),
    SubtaskDescription(SubtaskIndex(1), False, False, 12, "there", None, CheckpointId(6)),
)

KEPT = (
    KeptCheckpoint(CheckpointId(5), AttemptId(3), CheckpointKind.PERIODIC, "", 50_000, 51_000, 10, ()),
    KeptCheckpoint(CheckpointId(6), AttemptId(3), CheckpointKind.PERIODIC, "", 60_000, 61_500, 20, ("a",)),
    KeptCheckpoint(
        CheckpointId(7), AttemptId(3), CheckpointKind.PERIODIC, "", 70_000, 70_250, 4_096, ("a", "b"), ("b",)
    ),
)

RUNNING = replace(
    IDLE,
    phase="checkpoint in flight",
    attempt=AttemptId(3),
    parallelism=2,
    settings=RunSettings(checkpoint_interval_ms=2_500).checkpoint_settings(),
    restored=CheckpointId(4),
    started_ms=40_000,
    subtasks=SUBTASKS,
    in_flight=(CheckpointInFlight(CheckpointId(8), CheckpointKind.PERIODIC, "", "", 80_000, ()),),
    kept=KEPT,
    completed=7,
    failed=2,
    input_notes=(),
)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class ScrapedMetrics:
    """A scraped text of metrics, read by the parser of the official client."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self._samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the one sample that has exactly these labels; None where there is no such sample."""
        found = [sample.value for sample in self._samples if sample.name == name and sample.labels == labels]
        assert len(found) <= 1
        return found[0] if found else None


def metrics_of(describe: Callable[[], Sequence[JobDescription]]) -> JobMetrics:
    return JobMetrics(describe)


def answer(address: str, path: str) -> tuple[int, str]:
    """Return status and text; 0 while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answered:
            return answered.status, answered.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""
