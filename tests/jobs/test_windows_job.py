"""Windows behind key_by on brokers, through kill -9, up to a drain that closes those that are open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coordinator.schedule import SOON_MS
from tests.jobs.cli import twopc
from twopc.checkpoints.catalog import read_job
from twopc.faults.points import VARIABLE
from twopc.faults.process import await_true
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

NAME = "windows-job"
PAGES = 5
CLICKS = 1_000
"""In each of two halves, a second of event time apart."""

JOB = f"""
from twopc import Job, Json, KafkaSink, KafkaSource, Tumbling

job = Job("{NAME}")
clicks = job.source(KafkaSource("{NAME}-clicks", value=Json()), timestamp=lambda click: click["at_ms"])
counted = clicks.key_by(lambda click: click["page"], name="by-page").window(Tumbling("1m"), grace="10s").count(name="n")
counted.final().sink(KafkaSink("{NAME}-final", value=Json()))
counted.late().sink(KafkaSink("{NAME}-late", value=Json()))
"""


def click(number: int) -> Write:
    return Write(json.dumps({"page": f"/{number % PAGES}", "at_ms": (number + 1) * 1_000}).encode())


def final(servers: str) -> dict[tuple[bytes, int], int]:
    """Return the count of each window that is final; none is twice."""
    records = [(record.key or b"", json.loads(record.value or b"")) for record in read_topic(servers, f"{NAME}-final")]
    windows = {(key, window["start"]): int(window["value"]) for key, window in records}
    assert len(windows) == len(records)
    return windows


def command(servers: str, folder: Path, *more: str) -> tuple[str, ...]:
    return (
        *("run", str(folder / "job.py"), "-b", servers, "--checkpoint-dir", str(folder / "ck"), "-p", "2"),
        *("--host", "process", *more),
    )


def test_no_click_of_a_backlog_is_late_and_each_is_in_one_final_window_when_a_drain_has_closed_what_was_open(
    broker: Broker, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    (tmp_path / "job.py").write_text(JOB)
    for suffix in ("clicks", "final", "late"):
        create_topic(servers, f"{NAME}-{suffix}", 2)
    produce(servers, f"{NAME}-clicks", (click(number) for number in range(CLICKS)))
    first = tmp_path / "first"
    done = twopc(
        *command(servers, tmp_path, "--until-end", "--checkpoint-interval", "300ms"),
        **{VARIABLE: f"AFTER_PRE_COMMIT,checkpoint=2,once={first}"},
    )
    assert (done.code, first.exists()) == (0, True), done.err
    before = final(servers)
    assert {key for key, _ in before} == {b"/%d" % page for page in range(PAGES)}
    assert max(start for _, start in before) < (CLICKS - 60 + 1) * 1_000
    drain(servers, tmp_path)
    after = final(servers)
    assert read_topic(servers, f"{NAME}-late") == []
    assert before.items() <= after.items()
    assert sum(after.values()) == 2 * CLICKS
    assert max(start for _, start in after) == 2 * CLICKS * 1_000 // 60_000 * 60_000
    states: list[Any] = json.loads(
        twopc("state", "scan", "latest", "n", "--checkpoint-dir", str(tmp_path / "ck"), "-o", "json").out
    )
    assert states == []


def newest(folder: Path) -> int:
    return read_job(LocalStore(folder / "ck"), NAME).completed[-1].checkpoint_id


def drain(servers: str, folder: Path) -> None:
    """Give the job the second half, and drain it; a worker is killed at the first checkpoint of the drain."""
    early = newest(folder) + len(SOON_MS)
    struck = folder / "struck"
    armed = os.environ | {VARIABLE: f"BEFORE_TRIGGER,checkpoint={early + 1},subtask=0,once={struck}"}
    quiet = subprocess.DEVNULL
    run = [sys.executable, "-m", "twopc", *command(servers, folder, "--checkpoint-interval", "10m")]
    with subprocess.Popen(run, stderr=quiet, stdout=quiet, env=armed) as running:
        try:
            await_true(lambda: newest(folder) == early, "the first checkpoints did not complete", 240)
            produce(servers, f"{NAME}-clicks", (click(number) for number in range(CLICKS, 2 * CLICKS)))
            stopped = twopc("stop", NAME, "--drain", "-o", "json", "--checkpoint-dir", str(folder / "ck"))
            assert stopped.code == 0, stopped.err
            assert running.wait(timeout=240) == 0
        finally:
            running.kill()
    assert struck.exists()
