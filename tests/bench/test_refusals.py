"""What `twopc bench` refuses before anything is started, and how it ends when it is asked to."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from twopc import cli
from twopc.bench import run
from twopc.bench.plan import BenchPlan
from twopc.config import RunSettings
from twopc.errors import Unavailable
from twopc.kafka.clients.reachability import await_reachable

JOB = str(Path(run.__file__).with_name("upper.py"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-p", "0"], "parallelism"),
        (["no-such-job.py"], "no-such-job.py"),
        (["--json", "no-such-folder/result.json"], "--json"),
        (["--compare", "no-such-result.json"], "can't be read"),
    ],
)
def test_a_mistake_is_said_before_a_broker_is_started(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TWOPC_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr("twopc.cli.bench.LocalBroker", None)
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_broker_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "await_reachable", lambda servers: await_reachable(servers, 0))
    plan = BenchPlan(job_file=JOB)
    with pytest.raises(Unavailable, match=r"127.0.0.1:1 .*bootstrap_servers"):
        run.bench(plan, {"source-1": [b"value"]}, RunSettings(bootstrap_servers="127.0.0.1:1"), say=lambda what: None)


def test_the_port_of_the_real_jobs_metrics_is_left_to_it(tmp_path: Path) -> None:
    settings = RunSettings(host="process", metrics_port=9249, ui_port=9250)
    scratch = run.scratch_settings(BenchPlan(job_file=JOB), settings, tmp_path)
    assert (scratch.metrics_port, scratch.ui_port) == (None, None)


@pytest.mark.parametrize("paced", [False, True])
def test_a_run_that_was_ended_early_has_measured_nothing(
    paced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "run_job", lambda *_, **__: SimpleNamespace(stopped=True, attempts=1, records_out=5))
    with pytest.raises(run.Interrupted, match="nothing was measured"):
        run_of(tmp_path)._run_job(asked_by_a_signal() if paced else None)


def test_a_paced_run_is_stopped_when_all_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run_job", lambda *_, **__: SimpleNamespace(stopped=True, attempts=1, records_out=5))
    ending = run_of(tmp_path)
    ending._fed.set()
    ending._run_job(asked_by_a_signal())


def asked_by_a_signal() -> threading.Event:
    """An event as a signal leaves it."""
    asked = threading.Event()
    asked.set()
    return asked


def run_of(folder: Path) -> run._Run:
    return run._Run(
        BenchPlan(job_file=JOB), RunSettings(), "bench", folder, {"source-1": [b"value"]}, None, frozenset()
    )
