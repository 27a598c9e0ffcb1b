"""The page of a real job: while it runs, and from its ledger when it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from twopc.testing.broker import Broker
from twopc.testing.ports import free_port
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

PATIENCE_SECONDS = 120

JOB = """
from twopc import DeadLetter, Job, Json, KafkaSink, KafkaSource

def count(state, order):
    total = (state or 0) + order["amount"]
    return total, total

job = Job("{name}", on_error=DeadLetter("{name}-dead"))
orders = job.source(KafkaSource("{name}-in", value=Json()), name="orders")
orders.stateful_map(count, state=Json(), name="total").sink(KafkaSink("{name}-out", value=Json()), name="out")
"""


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the context ends."""
    command = (sys.executable, "-m", "twopc", *arguments)
    with subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_job_is_seen_from_its_first_records_to_its_ledger(
    broker: Broker, topic: Callable[[], str], browser: Browser, tmp_path: Path
) -> None:
    name, port, servers, checkpoints = topic(), free_port(), broker.bootstrap_servers, str(tmp_path / "checkpoints")
    (tmp_path / "job.py").write_text(JOB.format(name=name))
    for suffix in ("in", "out", "dead"):
        create_topic(servers, f"{name}-{suffix}", partitions=2)
    orders = [Write(b'{"amount": 2}', key=b"LGA"), Write(b'{"amount": 3}', key=b"LGA"), Write(b"{}", key=b"JFK")]
    produce(servers, f"{name}-in", orders)
    options = ("-b", servers, "--checkpoint-dir", checkpoints, "--host", "process", "--checkpoint-interval", "200ms")
    page = browser.new_page()
    with running("run", str(tmp_path / "job.py"), *options, "--ui-port", str(port)) as job:
        page.goto("about:blank")
        for _ in range(PATIENCE_SECONDS):
            try:
                page.goto(f"http://127.0.0.1:{port}/")
                break
            except Exception:  # noqa: BLE001  nobody listens yet
                page.wait_for_timeout(1000)
        page.set_default_timeout(PATIENCE_SECONDS * 1000)
        expect(page.locator("#phase")).to_have_text("running", timeout=PATIENCE_SECONDS * 1000)
        expect(page.locator("#tiles")).to_contain_text("3 in this attempt", timeout=PATIENCE_SECONDS * 1000)
        expect(page.locator(".checkpoint").nth(1)).to_be_visible(timeout=PATIENCE_SECONDS * 1000)
        expect(page.locator("#graph")).to_contain_text("total")
        expect(page.locator("#letters")).to_contain_text("KeyError: 'amount'", timeout=PATIENCE_SECONDS * 1000)
        expect(page.locator("#facts")).to_contain_text("checkpoint_interval")
        page.get_by_label("key", exact=True).fill("LGA")
        page.get_by_role("button", name="show").click()
        expect(page.locator("#state-found td").first).to_have_text("5")
        job.terminate()
        assert job.wait(PATIENCE_SECONDS) == 0
    with running("ui", "--checkpoint-dir", checkpoints, "-o", "json") as shown:
        assert shown.stdout is not None
        page.goto(json.loads(shown.stdout.readline())["ui"])
        expect(page.locator("#phase")).to_have_text("not running: finished")
        expect(page.locator("#attempts")).to_contain_text("finished")
        expect(page.locator("#splits")).to_contain_text(f"{name}-in[0]")
        shown.terminate()
        assert shown.wait(PATIENCE_SECONDS) == 0
    page.close()
