"""A real Prometheus, and its own tool, take what is served, and the alerts and the dashboard that come with it."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from tests.job_events import event
from tests.metrics.kit import RUNNING
from tests.web.test_server import FakeHealth
from twopc import events
from twopc.metrics.jobs import JobMetrics
from twopc.metrics.pages import MetricsPages
from twopc.testing.ports import free_port
from twopc.web.door import Door
from twopc.web.server import WebServer

pytestmark = pytest.mark.broker

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "metrics"
PATIENCE_SECONDS = 120

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: twopc
    static_configs: [{{targets: ["{target}"]}}]
"""


def all_metrics() -> JobMetrics:
    metrics = JobMetrics(lambda: [RUNNING])
    metrics.note(event(events.AttemptStarted))
    metrics.note(event(events.AttemptFailed))
    metrics.note(event(events.CheckpointCompleted, duration_ms=40.0))
    metrics.note(event(events.CheckpointAborted))
    return metrics


def run(*command: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, input=text, capture_output=True, text=True, timeout=120, cwd=FOLDER, check=False)


def test_promtool_has_nothing_to_say_against_the_metrics(promtool: Path) -> None:
    checked = run(promtool, "check", "metrics", text=generate_latest(all_metrics().registry).decode())
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_promtool_takes_the_alerts_and_they_fire_when_they_should(promtool: Path) -> None:
    assert run(promtool, "check", "rules", "alerts.yml").returncode == 0
    tested = run(promtool, "test", "rules", "alerts_test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_query_of_the_dashboard_is_one(promtool: Path, tmp_path: Path) -> None:
    queries = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    plain = [query.replace("$__rate_interval", "1m").replace("$job_name", ".*") for query in queries]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(plain)]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = run(promtool, "check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.proof
def test_prometheus_scrapes_a_job_and_answers_for_it(prometheus: Path, tmp_path: Path) -> None:
    metrics = all_metrics()
    pages = MetricsPages(metrics.registry, FakeHealth())
    with WebServer("metrics", Door("127.0.0.1"), 0, [pages]) as server:
        (tmp_path / "prometheus.yml").write_text(CONFIG.format(target=server.address))
        with prometheus_at(prometheus, tmp_path) as address:
            found = answer(address, "twopc_subtask_num_records_in_total")
            assert found["metric"]["job_name"] == "flights"
            assert found["metric"]["job"] == "twopc"
            assert "exported_job" not in found["metric"]
            assert found["value"][1] == "100"
            assert answer(address, "up")["value"][1] == "1"
            quantile = "histogram_quantile(0.5, twopc_job_checkpoint_duration_seconds_bucket)"
            assert answer(address, quantile)["metric"]["job_name"] == "flights"


@contextmanager
def prometheus_at(program: Path, folder: Path) -> Iterator[str]:
    """Run one while the caller looks at it."""
    address = f"127.0.0.1:{free_port()}"
    options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen([program, *options], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield address
        finally:
            process.kill()
            process.wait()


def answer(address: str, query: str) -> Any:
    """Return the one series that answers a query, once there is one."""
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=10) as answered:
                found = json.load(answered)["data"]["result"]
            if found:
                return found[0]
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"Prometheus never answered {query}")


def dashboard() -> Any:
    return json.loads((FOLDER / "dashboard.json").read_text())
