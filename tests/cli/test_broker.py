"""`twopc broker`, as a person and a script use it: real processes, and a real Kafka that outlives the command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from twopc.cli import app
from twopc.errors import ConfigurationError
from twopc.testing.local_broker import LocalBroker
from twopc.testing.ports import free_port


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a folder"
    yield folder
    broker = LocalBroker.open(folder)
    if broker is not None:
        broker.kill()


def twopc(*arguments: str | int | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "twopc", "broker", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)


def test_status_of_a_broker_that_never_was_is_not_running(data_dir: Path) -> None:
    answer = CliRunner().invoke(app, ["broker", "status", "--data-dir", str(data_dir), "-o", "json"])
    assert answer.exit_code == 3
    assert json.loads(answer.stdout) == {"running": False, "data_dir": str(data_dir)}


def test_stopping_what_does_not_run_is_no_error(data_dir: Path) -> None:
    answer = CliRunner().invoke(app, ["broker", "stop", "--data-dir", str(data_dir)])
    assert (answer.exit_code, answer.stdout) == (0, f"not running in {data_dir}\n")
    answer = CliRunner().invoke(app, ["broker", "stop", "--data-dir", str(data_dir), "-o", "json"])
    assert json.loads(answer.stdout) == {"stopped": False, "data_dir": str(data_dir)}


def test_a_running_broker_is_not_taken_for_one_at_another_port(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    broker = LocalBroker(data_dir, port=port)
    monkeypatch.setattr(LocalBroker, "open", lambda _: broker)
    monkeypatch.setattr(LocalBroker, "running", True)
    start = ["broker", "start", "--data-dir", str(data_dir)]
    assert CliRunner().invoke(app, start).stdout.splitlines()[-1] == f"127.0.0.1:{port}"
    assert CliRunner().invoke(app, [*start, "--port", str(port)]).exit_code == 0
    refused = CliRunner().invoke(app, [*start, "--port", str(port - 1)])
    assert f"runs already, at 127.0.0.1:{port}" in str(refused.exception)


def test_a_broker_is_not_started_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = CliRunner().invoke(app, ["broker", "start", "--data-dir", str(tmp_path / "file")])
    assert isinstance(refused.exception, ConfigurationError)
    assert "file is a file, and a broker needs a folder" in str(refused.exception)


@pytest.mark.broker
def test_a_broker_is_started_found_again_and_stopped(data_dir: Path) -> None:
    port = free_port()
    servers = f"127.0.0.1:{port}"
    started = twopc("start", "--data-dir", data_dir, "--port", port)
    assert (started.returncode, started.stdout) == (0, f"{servers}\n"), started.stderr

    again = twopc("start", "--data-dir", data_dir, "--port", port)
    assert (again.returncode, again.stdout) == (0, f"{servers}\n")
    assert again.stderr == f"already running in {data_dir}\n"

    status = json.loads(twopc("status", "--data-dir", data_dir, "-o", "json").stdout)
    assert (status["running"], status["bootstrap_servers"]) == (True, servers)

    elsewhere = twopc("start", "--data-dir", data_dir.with_name("other"), "--port", port)
    assert elsewhere.returncode == 2
    assert elsewhere.stderr.startswith(f"error: port {port} is taken: ")
    assert elsewhere.stderr.count("\n") == 1

    assert twopc("stop", "--data-dir", data_dir).stdout == f"stopped {servers}\n"
    assert twopc("status", "--data-dir", data_dir).returncode == 3
