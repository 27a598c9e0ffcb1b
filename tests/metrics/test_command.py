"""`twopc coordinator start --metrics-port`, and `--ui-port`, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.metrics.kit import ScrapedMetrics, answer
from tests.ui.kit import CHECKPOINTS, asked, stored_job


def test_a_coordinator_says_where_its_metrics_are_and_serves_them(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "twopc", "coordinator", "start", "--checkpoint-dir", str(tmp_path), "-o", "json")
    with subprocess.Popen([*command, "--metrics-port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["metrics"]
            for path in ("/healthz", "/readyz"):
                assert answer(address, path) == (200, "ok\n")
            assert ScrapedMetrics(answer(address, "/metrics")[1]).value("twopc_coordinator_up") == 1
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_a_coordinator_shows_the_jobs_of_its_folder(tmp_path: Path) -> None:
    stored_job(tmp_path)
    folder = str(tmp_path / CHECKPOINTS)
    command = (sys.executable, "-m", "twopc", "coordinator", "start", "--checkpoint-dir", folder, "-o", "json")
    with subprocess.Popen([*command, "--ui-port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            status, [job] = asked(json.loads(process.stdout.readline())["ui"], "/api/jobs")
            assert (status, job["job"], job["checkpoint_id"]) == (200, "flights", 2)
        finally:
            process.kill()


def test_without_a_port_nothing_is_served(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "twopc", "coordinator", "start", "--checkpoint-dir", str(tmp_path), "-o", "json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "metrics" not in json.loads(process.stdout.readline())
        finally:
            process.kill()
