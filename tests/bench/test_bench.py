"""`twopc bench` as a user runs it, on plain processes and a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from twopc.testing.broker import Broker

pytestmark = pytest.mark.broker

EXAMPLES = Path(__file__).parents[2] / "examples"


def bench(broker: Broker, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "twopc", "bench", *arguments, "-b", broker.bootstrap_servers]
    done = subprocess.run(
        [*command, "--host", "process", "-o", "json"], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


def topics(broker: Broker) -> set[str]:
    return set(AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=60).topics)


def test_throughput_is_measured_and_nothing_is_left_behind(broker: Broker) -> None:
    before = topics(broker)
    result = bench(broker, "--records", "20000")
    assert (result["written"], result["visible"]) == (20_000, 20_000)
    assert result["records_per_s"] > 0
    assert result["pause_ms"]["p50"] > 0
    assert topics(broker) == before


@pytest.mark.proof
def test_of_several_sources_and_sinks_each_has_its_share_and_its_rate(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRILLED_JOB", "benchmarked")
    job = str(Path(__file__).parents[1] / "drill" / "graph_job.py")
    before = topics(broker)
    result = bench(broker, job, "--records", "5001")
    assert result["sources"] == {"web": 2_501, "app": 2_500}
    assert result["written"] == result["visible"] == sum(each["visible"] for each in result["sinks"].values())
    assert (result["sinks"]["all"]["visible"], result["sinks"]["met"]["visible"]) == (5_001, 5_001)
    assert topics(broker) == before
    paced = bench(broker, job, "--records", "2000", "--rate", "1000", "--checkpoint-interval", "200ms")
    assert paced["visible"] == paced["written"] >= 4_000


def test_latency_is_measured_at_a_rate_also_for_a_job_that_drops_records(broker: Broker) -> None:
    job = str(EXAMPLES / "keep_even.py")
    result = bench(broker, job, "--records", "2000", "--rate", "1000", "--checkpoint-interval", "200ms")
    assert result["visible"] == result["written"] == 1_000
    assert 0 < result["latency_ms"]["p50"] <= result["latency_ms"]["p99"]


@pytest.mark.proof
def test_a_job_that_reads_what_it_writes_is_measured_by_what_others_read(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRILLED_JOB", "benchmarked")
    job = str(Path(__file__).parents[1] / "drill" / "rekeyed_job.py")
    before = topics(broker)
    result = bench(broker, job, "--records", "4000", "--checkpoint-interval", "300ms")
    assert result["written"] == result["visible"]
    assert (result["sinks"]["counts"]["visible"], result["sinks"]["copies"]["visible"]) == (4_000, 2_000)
    assert set(result["sinks"]) == {"counts", "windows", "copies"}
    paced = bench(broker, job, "--records", "1000", "--rate", "1000", "--checkpoint-interval", "200ms")
    assert paced["visible"] == paced["written"] >= 1_500
    assert topics(broker) == before
