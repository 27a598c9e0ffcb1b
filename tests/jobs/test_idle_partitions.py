"""Windows of a partition that gets no records any more, on a broker, are told as the other goes on; with a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.faults.points import VARIABLE
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

NAME = "idle-partitions"
WAIT_SECONDS = 90

JOB = f"""
from twopc import Job, KafkaSink, KafkaSource, Json, Tumbling

job = Job("{NAME}")
counted = job.source(KafkaSource("{NAME}-in")).window(Tumbling("1m"), idle="1s").count(name="n")
counted.final().sink(KafkaSink("{NAME}-final", value=Json()))
counted.late().sink(KafkaSink("{NAME}-late"))
"""


def test_a_partition_without_records_follows_the_other_and_each_of_its_windows_is_told_once(
    broker: Broker, tmp_path: Path
) -> None:
    servers, struck = broker.bootstrap_servers, tmp_path / "struck"
    (tmp_path / "job.py").write_text(JOB)
    for suffix in ("in", "final", "late"):
        create_topic(servers, f"{NAME}-{suffix}", 2)
    produce(servers, f"{NAME}-in", [*(busy(second) for second in range(1, 150)), quiet(1)])
    # The worker of the quiet partition dies when its window is told, and pre-committed.
    armed = os.environ | {VARIABLE: f"AFTER_PRE_COMMIT,subtask=1,checkpoint=8,once={struck}"}
    arguments = ("run", str(tmp_path / "job.py"), "-b", servers, "--checkpoint-dir", str(tmp_path / "ck"), "-p", "2")
    command = [sys.executable, "-m", "twopc", *arguments, "--host", "process", "--checkpoint-interval", "200ms"]
    with subprocess.Popen(command, env=armed, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as running:
        try:
            await_windows(servers, {(b"busy", 0), (b"busy", 60_000), (b"quiet", 0)})
            # Time of the quiet one is that of the busy one by now.
            produce(servers, f"{NAME}-in", [quiet(2)])
            stopped = twopc("stop", NAME, "--checkpoint-dir", str(tmp_path / "ck"))
            assert stopped.code == 0, stopped.err
            assert running.wait(timeout=120) == 0
        finally:
            running.kill()
    assert struck.exists()
    assert set(windows(servers).values()) == {1}
    assert windows(servers).keys() == {(b"busy", 0), (b"busy", 60_000), (b"quiet", 0)}


def busy(second: int) -> Write:
    return Write(b"", b"busy", 0, second * 1_000)


def quiet(second: int) -> Write:
    return Write(b"", b"quiet", 1, second * 1_000)


def windows(servers: str) -> Counter[tuple[bytes, int]]:
    """Return how often each window was told, by key and start."""
    final = read_topic(servers, f"{NAME}-final")
    return Counter((record.key or b"", json.loads(record.value or b"")["start"]) for record in final)


def await_windows(servers: str, wanted: set[tuple[bytes, int]]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not wanted <= windows(servers).keys():
        assert time.monotonic() < until, windows(servers)
        time.sleep(0.2)
