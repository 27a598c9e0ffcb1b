"""What is counted of a query's batches, as it is scraped; the tasks and brokers are played."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.metrics.kit import ScrapedMetrics, answer
from twopc.errors import ConfigurationError
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.sink import Outcome, Settled
from twopc.spark.streaming.decision import WrittenBatch
from twopc.spark.streaming.served_metrics import ServedMetrics
from twopc.spark.streaming.steps import AbortWritten, Decide, Drain, End, ListOpen, Look, Write

ONE, OTHER = (Committable(name, CheckpointId(0), SubtaskIndex(0), {}) for name in ("one", "other"))


@pytest.fixture
def metrics() -> Iterator[ServedMetrics]:
    served = ServedMetrics("lines", "127.0.0.1", 0)
    yield served
    served.close()


def scraped(metrics: ServedMetrics) -> ScrapedMetrics:
    return ScrapedMetrics(answer(metrics.address, "/metrics")[1])


def value(metrics: ServedMetrics, name: str) -> float | None:
    return scraped(metrics).value(f"twopc_query_{name}", query_name="lines")


def test_a_batch_is_counted_with_its_rows_bytes_and_times(metrics: ServedMetrics) -> None:
    metrics.carried_out(Write(3), WrittenBatch((ONE, OTHER), records=10, size=100), 0.5)
    assert value(metrics, "pending_committables") == 2
    metrics.carried_out(ListOpen(is_due=False), frozenset(["a", "b", "c"]), 0.0)
    metrics.carried_out(Decide(3, 1, (ONE, OTHER)), None, 0.1)
    metrics.carried_out(End((ONE, OTHER), commit=True), [], 0.2)
    metrics.committed(3)
    said = {name: value(metrics, name) for name in ("batches_total", "num_records_out_total", "num_bytes_out_total")}
    assert said == {"batches_total": 1, "num_records_out_total": 10, "num_bytes_out_total": 100}
    assert value(metrics, "last_committed_batch") == 3
    assert (value(metrics, "pending_committables"), value(metrics, "transactions_open")) == (0, 3)
    assert [value(metrics, f"{each}_duration_seconds_sum") for each in ("write", "decision", "commit")] == [
        0.5,
        0.1,
        0.2,
    ]


def test_what_is_pending_has_an_age_until_it_is_ended_or_given_up(metrics: ServedMetrics) -> None:
    since = "oldest_pending_committable_timestamp_seconds"
    metrics.carried_out(Write(3), WrittenBatch((ONE, OTHER), records=10, size=100), 0.5)
    first = value(metrics, since)
    assert first
    metrics.carried_out(Look((ONE, OTHER)), [Settled(each, Outcome.HELD, "") for each in (ONE, OTHER)], 0.0)
    assert (value(metrics, "pending_committables"), value(metrics, since)) == (2, first)
    metrics.carried_out(End((ONE, OTHER), commit=False), [Settled(ONE, Outcome.LOST, "aborted")], 0.0)
    assert (value(metrics, "pending_committables"), value(metrics, since)) == (0, 0)
    metrics.carried_out(Write(3), WrittenBatch((ONE,), records=10, size=100), 0.5)
    metrics.carried_out(AbortWritten((ONE,)), None, 0.0)
    assert (value(metrics, "pending_committables"), value(metrics, since)) == (0, 0)


def test_what_was_open_stays_told_where_nobody_was_asked(metrics: ServedMetrics) -> None:
    metrics.carried_out(ListOpen(is_due=False), frozenset(["a", "b"]), 0.0)
    metrics.carried_out(ListOpen(is_due=False), frozenset(), 0.0)
    assert value(metrics, "transactions_open") == 2


def test_a_batch_that_was_decided_before_is_a_replay(metrics: ServedMetrics) -> None:
    metrics.carried_out(Drain(3), None, 0.5)
    assert value(metrics, "batches_replayed_total") == 1


def test_what_is_lost_is_counted_when_it_is_found(metrics: ServedMetrics) -> None:
    settled = [Settled(ONE, Outcome.LOST, "aborted"), Settled(OTHER, Outcome.HELD, "")]
    metrics.carried_out(Look((ONE, OTHER)), settled, 0.0)
    assert value(metrics, "transactions_lost_total") == 1


def test_a_query_is_ready_while_its_last_batch_was_committed(metrics: ServedMetrics) -> None:
    assert answer(metrics.address, "/readyz") == (503, "no batch has been committed\n")
    metrics.committed(0)
    assert answer(metrics.address, "/readyz") == (200, "ok\n")
    metrics.failed()
    assert answer(metrics.address, "/readyz") == (503, "the last batch failed\n")
    assert answer(metrics.address, "/healthz")[0] == 200


def test_a_port_that_is_taken_is_refused_by_name(metrics: ServedMetrics) -> None:
    with pytest.raises(ConfigurationError, match="metrics can't be served on"):
        ServedMetrics("other", "127.0.0.1", int(metrics.address.rpartition(":")[2]))
