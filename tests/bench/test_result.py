from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from twopc.bench.report import text
from twopc.bench.result import BenchResult, SinkRate, compare, differing
from twopc.errors import ConfigurationError

RESULT = BenchResult(
    job="job.py",
    records=1_000,
    written=1_000,
    visible=1_000,
    records_per_s=500.0,
    sources={"source-1": 1_000},
    sinks={"sink-1": SinkRate(1_000, 500.0)},
    cpu_s_per_million=1.5,
    cpu_s_per_million_whole=3.0,
    startup_s=2.0,
    seconds=4.0,
    checkpoints=3,
    checkpoints_aborted=0,
    restarts=0,
    checkpoint_ms={"p50": 10.0, "p99": 20.0, "max": 20.0},
    pause_ms={"p50": 5.0, "p99": 6.0, "max": 6.0},
    latency_ms={},
    memory_mb=300.0,
    worker_mb=90.0,
    settings={"parallelism": 1},
    versions={"pyspark": "4"},
    rates=[(1.0, 500.0)],
    checkpoint_series=[(1.0, 10.0)],
    pauses=[5.0, 6.0],
    latencies=[],
    memory_series=[(1.0, 300.0)],
)


def test_a_result_that_was_written_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    RESULT.write(path)
    assert BenchResult.read(path).to_json() == json.loads(json.dumps(RESULT.to_json()))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 99}', '{"format": 2}'])
def test_what_is_no_result_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"other.json is not a result of twopc bench"):
        BenchResult.read(path)


def test_more_records_a_second_are_better_and_longer_pauses_are_worse() -> None:
    now = replace(RESULT, records_per_s=600.0, pause_ms={"p50": 9.0, "p99": 6.0})
    found = {each.name: each.better for each in compare(now, RESULT)}
    assert found["records/s"] is True
    assert found["pause p50, ms"] is False
    assert found["pause p99, ms"] is None


def test_figures_that_were_not_measured_are_not_compared() -> None:
    assert "latency p50, ms" not in {each.name for each in compare(RESULT, RESULT)}


def test_a_result_with_fewer_visible_records_than_were_written_is_not_exact() -> None:
    assert RESULT.exact
    assert not replace(RESULT, visible=999).exact


def test_the_text_says_what_is_better_than_before() -> None:
    compared = compare(RESULT, replace(RESULT, records_per_s=250.0))
    assert "2.00 times, better" in text(RESULT, compared)


def test_what_was_not_alike_in_two_runs_is_shown_beside_their_figures() -> None:
    now = replace(RESULT, settings={"parallelism": 2}, versions={"pyspark": "5"})
    differ = differing(now, RESULT)
    assert differ == {"parallelism": "2 against 1", "pyspark": "5 against 4"}
    assert differing(RESULT, RESULT) == {}
    assert "not alike: parallelism" in text(now, compare(now, RESULT), differ)


def test_of_a_job_of_several_sources_and_sinks_each_is_told() -> None:
    sinks = {"all": SinkRate(900, 450.0), "large": SinkRate(100, None)}
    told = text(replace(RESULT, sources={"web": 600, "app": 400}, sinks=sinks)).splitlines()
    shown = {name.strip(): value for name, _, value in (line.partition("  ") for line in told)}
    assert shown["source web"].strip() == "600 records"
    assert shown["sink all"].strip() == "900 records, 450 a second"
    assert shown["sink large"].strip() == "100 records, ? a second"
