"""What the functions of a job print and log, and what a run says of itself, reaches who watches, and no answer."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import TIMEOUT_SECONDS, CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

JOB = """
import logging
import os
import sys
from twopc import Job, KafkaSink, KafkaSource

print("the file is loaded")

def talkative(value):
    print("printed", value, "word " * 60 + "end")
    print("complained", file=sys.stderr)
    logging.getLogger("my.own").warning("logged %s", value)
    logging.getLogger("my.own").info("noted")
    logging.getLogger("my.own").debug("detail")
    return value

job = Job(os.environ["JOB_NAME"])
job.source(KafkaSource(os.environ["JOB_NAME"] + "-in")).map(talkative).sink(KafkaSink(os.environ["JOB_NAME"] + "-out"))
"""
PRINTED = "printed b'a' " + "word " * 60 + "end"


@pytest.fixture
def job(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> tuple[list[str], dict[str, str]]:
    """The arguments of `twopc run` for a job with one record, and the environment that it needs."""
    name = topic()
    file = tmp_path / "job.py"
    file.write_text(JOB)
    for each in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{each}")
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b"a")])
    arguments = ["run", str(file), "--bootstrap-servers", broker.bootstrap_servers, "--checkpoint-interval", "200ms"]
    return [*arguments, "--checkpoint-dir", str(tmp_path / "checkpoints")], {"JOB_NAME": name}


def run(job: tuple[list[str], dict[str, str]], *more: str) -> CommandResult:
    arguments, environment = job
    done = twopc(*arguments, "--until-end", *more, **environment)
    assert done.code == 0, done.err
    return done


ON_SPARK = ("--host", "spark", "--master", "local[1]")


def hosts(*spark_marks: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Both hosts; the marks are of Spark."""
    process = pytest.param(("--host", "process"), id="process")
    return pytest.mark.parametrize("host", [process, pytest.param(ON_SPARK, id="spark", marks=spark_marks)])


@hosts(pytest.mark.spark, pytest.mark.proof)
def test_the_words_of_a_function_keep_text_name_and_level(
    job: tuple[list[str], dict[str, str]], host: tuple[str, ...]
) -> None:
    done = run(job, *host, "-o", "json")
    assert json.loads(done.out)["records_in"] == 1, "standard output is the answer, and nothing else"
    lines = done.err.splitlines()
    assert {"the file is loaded", PRINTED, "complained"} <= set(lines)
    assert [line.split(" ", 2)[2] for line in lines if "my.own" in line] == [
        "WARNING my.own (subtask 0): logged b'a'",
        "INFO my.own (subtask 0): noted",
    ]
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line) for line in lines if "checkpoint 1 completed" in line)


@hosts(pytest.mark.spark, pytest.mark.proof)
def test_with_log_format_json_every_line_is_an_object(
    job: tuple[list[str], dict[str, str]], host: tuple[str, ...]
) -> None:
    done = run(job, *host, "--log-format", "json", "--log-level", "debug")
    lines = [json.loads(line) for line in done.err.splitlines()]
    said = {(line["logger"], line["level"], line["message"]) for line in lines if line.get("subtask") == 0}
    assert {
        ("stdout", "INFO", PRINTED),
        ("stderr", "INFO", "complained"),
        ("my.own", "WARNING", "logged b'a'"),
        ("my.own", "DEBUG", "detail"),
    } <= said
    assert any(line.get("event") == "checkpoint-completed" and line["checkpoint"] == 1 for line in lines)


def test_an_error_is_an_object_too_with_log_format_json(job: tuple[list[str], dict[str, str]]) -> None:
    arguments, environment = job
    done = twopc(*arguments, "--host", "process", "--log-format", "json", "--from", "99", **environment)
    assert (done.code, done.out) == (2, "")
    assert [json.loads(line)["level"] for line in done.err.splitlines()][-1] == "ERROR"


def test_the_words_of_a_function_stand_whole_above_the_live_view(
    job: tuple[list[str], dict[str, str]], tmp_path: Path
) -> None:
    arguments, environment = job
    terminal, theirs = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        try:
            while chunk := os.read(terminal, 65_536):
                shown.append(chunk)
        except OSError:
            return  # The other side is closed.

    reader = threading.Thread(target=read, daemon=True)
    with subprocess.Popen(
        [sys.executable, "-m", "twopc", *arguments, "--host", "process", "--until-end"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | environment | {"TERM": "xterm", "COLUMNS": "80"},
        text=True,
    ) as running:
        os.close(theirs)
        reader.start()
        answer, _ = running.communicate(timeout=TIMEOUT_SECONDS)
    reader.join(60)
    os.close(terminal)
    text = b"".join(shown).decode()
    assert running.returncode == 0, text
    assert answer.count("\n") == 1
    assert PRINTED in text, "a long line is not broken"
    assert "WARNING my.own (subtask 0): logged b'a'" in text
    assert text.index(PRINTED) < text.rindex("checkpoints"), "the view is drawn again below"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_says_what_it_waits_for(
    job: tuple[list[str], dict[str, str]], tmp_path: Path, number: signal.Signals
) -> None:
    arguments, environment = job
    errors = tmp_path / "errors"
    with (
        errors.open("w") as file,
        subprocess.Popen(
            [sys.executable, "-m", "twopc", *arguments, "--host", "process"],
            stderr=file,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        ) as running,
    ):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while "checkpoint 1 completed" not in errors.read_text() and time.monotonic() < deadline:
            assert running.poll() is None, errors.read_text()
            time.sleep(0.05)
        running.send_signal(number)
        answer, _ = running.communicate(timeout=TIMEOUT_SECONDS)
    assert (running.returncode, "stopped with a last checkpoint" in answer) == (0, True)
    assert "stopping: a last checkpoint; Ctrl-C again ends at once" in errors.read_text()
