"""A job on two processes, scraped and traced while one of them is killed: what is told is what happened."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.metrics.kit import ScrapedMetrics, answer
from tests.tracing.receiver import attributes, receiving
from twopc.faults.armed_faults import ArmedFault, armed
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

RECORDS = 400
PATIENCE_SECONDS = 180

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource("{name}-in"), name="in").sink(KafkaSink("{name}-out"), name="out")
"""


@contextmanager
def running(broker: Broker, name: str, folder: Path, port: int, collector: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the job until it is told to stop; its first subtask is killed at its third checkpoint."""
    (folder / "job.py").write_text(JOB.format(name=name))
    fault = ArmedFault(CrashPoint.BEFORE_COMMIT, checkpoint=3, subtask=0)
    command = (
        *(sys.executable, "-m", "twopc", "run", str(folder / "job.py"), "-b", broker.bootstrap_servers, "-p", "2"),
        *("--checkpoint-dir", str(folder / "ck"), "--host", "process", "--checkpoint-interval", "200ms"),
        *("--metrics-port", str(port), "--traces"),
    )
    environment = {VARIABLE: armed([fault], folder), "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector}"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def scraped_when(port: int, holds: Callable[[ScrapedMetrics], bool]) -> ScrapedMetrics:
    deadline = time.monotonic() + PATIENCE_SECONDS
    found = ScrapedMetrics("")
    while time.monotonic() < deadline:
        status, text = answer(f"127.0.0.1:{port}", "/metrics")
        if status == 200 and holds(found := ScrapedMetrics(text)):
            return found
        time.sleep(0.2)
    raise AssertionError(f"it never came true of {sorted(found.families)}")


def test_a_scrape_tells_of_a_restart_and_of_checkpoints_before_and_after_it(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, port = topic(), free_port()
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", partitions=2)
    produce(
        broker.bootstrap_servers, f"{name}-in", (Write(b"%d" % each, partition=each % 2) for each in range(RECORDS))
    )
    job = {"job_name": name}
    with receiving() as receiver, running(broker, name, tmp_path, port, receiver.address) as process:
        found = scraped_when(
            port,
            lambda now: (
                now.value("twopc_job_num_restarts_total", **job) == 1
                and (now.value("twopc_job_last_completed_checkpoint_id", **job) or 0) > 5
                and now.value("twopc_job_pending_committables", **job, committer="subtask") == 0
            ),
        )
        assert answer(f"127.0.0.1:{port}", "/healthz") == (200, "ok\n")
        assert answer(f"127.0.0.1:{port}", "/readyz") == (200, "ok\n")
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0, (tmp_path / "log").read_text()
    assert found.value("twopc_coordinator_up") == 1
    assert found.value("twopc_job_attempt", **job) == 2
    assert found.value("twopc_job_subtasks_attached", **job) == 2
    assert (found.value("twopc_job_number_of_completed_checkpoints_total", **job) or 0) >= 5
    assert (found.value("twopc_job_checkpoint_duration_seconds_count", **job) or 0) >= 5
    values = sorted(int(record.value or b"") for record in read_topic(broker.bootstrap_servers, f"{name}-out"))
    assert values == list(range(RECORDS))
    traces = [(span, attributes(span)) for span in receiver.spans if not span.parent_span_id]
    [recovered] = [said for _, said in traces if "twopc.checkpoint.recovered" in said]
    assert recovered["twopc.checkpoint.id"] == 3
    committed = next(span for span, said in traces if said["twopc.attempt"] == 2 and not span.status.message)
    whole = [span.name for span in receiver.spans if span.trace_id == committed.trace_id]
    of_subtask = ("trigger", "snapshot", "pre-commit", "store", "commit")
    assert sorted(whole) == sorted(["checkpoint", "completion", *of_subtask, *of_subtask])
