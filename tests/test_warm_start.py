"""A warm start is like a cold one, as far as whoever starts and whoever is started can tell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from tests import warm_start
from tests.leak_audit.processes import marked_processes
from twopc.faults.process import await_true
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, produce, read_topic

TWOPC = [sys.executable, "-m", "twopc"]
JOB = """
import os, sys, signal, time
print(sys.argv, os.getcwd(), os.environ.get("SAID"), os.getppid(), os.getsid(0) == os.getpid(), flush=True)
{what}
"""


@pytest.fixture(params=["warm", "cold"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    """An environment in which commands start as the test's id says."""
    return dict(os.environ) | ({warm_start.COLD: "1"} if request.param == "cold" else {})


def job(folder: Path, what: str) -> list[str]:
    """Return a command that loads a file which does that."""
    (folder / "job.py").write_text(JOB.format(what=what))
    return [*TWOPC, "run", "job.py", "-b", "127.0.0.1:1", "--host", "inline"]


def test_a_command_has_the_arguments_folder_environment_and_parent_that_it_was_given(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    command = job(tmp_path, "sys.exit(7)")
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment | {"SAID": "so"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode != 0
    assert (
        f"__main__.py', 'run', 'job.py', '-b', '127.0.0.1:1', '--host', 'inline'] {tmp_path} so {os.getpid()} False"
        in (done.stdout + done.stderr)
    )


def test_one_that_is_killed_is_seen_to_be(tmp_path: Path, environment: dict[str, str]) -> None:
    command = job(tmp_path, "time.sleep(600)")
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.rstrip().endswith(b"True"), line
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL


def test_one_that_an_audit_looks_for_is_found_by_its_environment(tmp_path: Path, environment: dict[str, str]) -> None:
    mine = uuid4().hex
    command, marked = job(tmp_path, "time.sleep(600)"), environment | {"DRILL_JOB": mine}
    with subprocess.Popen(
        command, cwd=tmp_path, env=marked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.pid in {found.pid for found in marked_processes("DRILL_JOB", mine)}
        os.killpg(process.pid, signal.SIGKILL)
    await_true(lambda: not list(marked_processes("DRILL_JOB", mine)), "something of it lives")


def test_nothing_of_a_command_is_left_when_it_has_ended(environment: dict[str, str]) -> None:
    with subprocess.Popen([*TWOPC, "version"], env=environment, stdout=subprocess.DEVNULL) as process:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        assert process.wait(120) == 0
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []


def test_an_interpreter_is_started_where_the_environment_asks_for_another_kind_of_one() -> None:
    done = subprocess.run(
        [*TWOPC, "version"],
        env=os.environ | {"PYTHONVERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "import 'site'" in done.stderr


LATE_IMPORTS = """
import sys
before = set(sys.modules)
from twopc import Job, Json, KafkaSink, KafkaSource

job = Job("{topic}")
source = job.source(KafkaSource("{topic}", value=Json()))
source.map(lambda _: sorted(set(sys.modules) - before)).sink(KafkaSink("{topic}-out", value=Json()))
"""


@pytest.mark.broker
def test_a_worker_that_starts_warm_imports_nothing_but_its_job_and_what_is_compiled(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    for each in (name, f"{name}-out"):
        create_topic(broker.bootstrap_servers, each)
    produce(broker.bootstrap_servers, name, [b"7"])
    (tmp_path / "job.py").write_text(LATE_IMPORTS.format(topic=name))
    where = ["-b", broker.bootstrap_servers, "--checkpoint-dir", str(tmp_path / "checkpoints")]
    subprocess.run(
        [*TWOPC, "run", str(tmp_path / "job.py"), *where, "--host", "process", "--until-end"], check=True, timeout=120
    )
    [record] = read_topic(broker.bootstrap_servers, f"{name}-out")
    late = [module for module in json.loads(record.value or b"") if not module.rpartition(".")[2].startswith("_")]
    assert late == []
