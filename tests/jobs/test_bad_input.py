"""Bad input gets one clear message and a non-zero exit, no traceback, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Protocol

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os
from twopc import Job, Json, KafkaSink, KafkaSource

def halve(value):
    return {"half": 10 // value["n"]}

job = Job(os.environ["JOB_NAME"])
job.source(KafkaSource(os.environ["JOB_NAME"] + "-in", value=Json())).map(halve).sink(
    KafkaSink(os.environ["JOB_NAME"] + "-out", value=Json())
)
"""


class Runner(Protocol):
    def __call__(self, *more: str, servers: str | None = None) -> CommandResult: ...


@pytest.fixture
def name(topic: object) -> str:
    assert callable(topic)
    return str(topic())


@pytest.fixture
def run(broker: Broker, tmp_path: Path, name: str) -> Runner:
    job_file = tmp_path / "job.py"
    job_file.write_text(JOB)

    def run_job(*more: str, servers: str | None = None) -> CommandResult:
        return twopc(
            *("run", str(job_file), "--bootstrap-servers", servers or broker.bootstrap_servers, "--host", "process"),
            *(
                "--checkpoint-dir",
                str(tmp_path / "checkpoints"),
                "--checkpoint-interval",
                "200ms",
                "--until-end",
                *more,
            ),
            JOB_NAME=name,
        )

    return run_job


@pytest.fixture
def topics(broker: Broker, name: str) -> None:
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}")


def failed_with(finished: CommandResult, *words: str, code: int | None = None) -> None:
    assert finished.code != 0
    assert code is None or finished.code == code, finished.err
    assert "Traceback" not in finished.err
    errors = [line for line in finished.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, finished.err
    for word in words:
        assert word in finished.err, finished.err


@pytest.mark.usefixtures("topics")
def test_a_record_that_cannot_be_decoded_is_named(broker: Broker, run: Runner, name: str) -> None:
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b'{"n": 1}'), Write(b"not json")])
    failed_with(run(), f"{name}-in[0]@1", "JSON")


@pytest.mark.usefixtures("topics")
def test_a_user_function_that_raises_names_the_record_and_the_cause(broker: Broker, run: Runner, name: str) -> None:
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b'{"n": 1}'), Write(b'{"n": 0}')])
    failed_with(run(), f"{name}-in[0]@1", "ZeroDivisionError", "halve")


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("host", ["process", pytest.param("inline", marks=pytest.mark.proof)])
def test_debug_shows_the_traceback_of_the_users_own_function(
    broker: Broker, tmp_path: Path, run: Runner, name: str, host: str
) -> None:
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b'{"n": 0}')])
    job = ("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "--host", host, "--until-end")
    folder = ("--checkpoint-dir", str(tmp_path / "checkpoints"))
    assert 'return {"half"' not in twopc(*job, *folder, JOB_NAME=name).err
    debugged = twopc("--debug", *job, *folder, JOB_NAME=name)
    assert 'return {"half": 10 // value["n"]}' in debugged.err
    assert "in halve" in debugged.err


@pytest.mark.usefixtures("topics")
def test_what_was_completed_before_a_bad_record_stays_and_the_job_goes_on_from_there(
    broker: Broker, run: Runner, tmp_path: Path, name: str
) -> None:
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b'{"n": 1}')])
    assert run().code == 0
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b'{"n": 2}'), Write(b'{"n": 0}')])
    failed_with(run())
    job_file = tmp_path / "job.py"
    job_file.write_text(JOB.replace('10 // value["n"]', '10 // value["n"] if value["n"] else -1'))
    assert run().code == 0
    values = Counter(record.value for record in read_topic(broker.bootstrap_servers, f"{name}-out"))
    assert values == {b'{"half":10}': 1, b'{"half":5}': 1, b'{"half":-1}': 1}


@pytest.mark.parametrize(("there", "missing"), [("out", "in"), pytest.param("in", "out", marks=pytest.mark.proof)])
def test_a_missing_topic_is_named(broker: Broker, run: Runner, name: str, there: str, missing: str) -> None:
    create_topic(broker.bootstrap_servers, f"{name}-{there}")
    failed_with(run(), f"{name}-{missing}", "put topic", code=2)


def test_all_topics_that_are_missing_are_named_with_the_command_that_makes_them(run: Runner, name: str) -> None:
    missing = f"input topic '{name}-in' and output topic '{name}-out' aren't there"
    failed_with(run(), f"{missing}: create them (twopc topics create {name}-in {name}-out, ", "put topic", code=2)


# A minute of patience with brokers.
@pytest.mark.timeout(720)
def test_an_unreachable_broker_is_named_with_the_setting_to_look_at(run: Runner) -> None:
    servers = f"127.0.0.1:{free_port()}"
    failed_with(run(servers=servers), servers, "bootstrap")


def test_no_bootstrap_servers_at_all_is_said(run: Runner) -> None:
    failed_with(run(servers=" "), "bootstrap")


@pytest.mark.usefixtures("topics")
def test_a_checkpoint_that_is_not_there_is_refused(run: Runner) -> None:
    failed_with(run("--from", "77"), "77", "checkpoint", code=2)


@pytest.mark.usefixtures("topics")
def test_a_checkpoint_of_another_job_is_refused(run: Runner, tmp_path: Path) -> None:
    foreign = tmp_path / "checkpoints" / "another-job" / "chk-1"
    foreign.mkdir(parents=True)
    failed_with(run("--from", str(foreign)), "another-job", code=2)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize(
    ("inline_bytes", "file"),
    [("0", "files/*-CURRENT"), pytest.param("20480", "chk-*/metadata.json", marks=pytest.mark.proof)],
)
def test_a_damaged_newest_checkpoint_stops_the_job_and_names_the_file(
    broker: Broker, run: Runner, tmp_path: Path, name: str, inline_bytes: str, file: str
) -> None:
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b'{"n": 1}')])
    assert run("--checkpoint-inline-bytes", inline_bytes).code == 0
    damaged = max((tmp_path / "checkpoints" / name).glob(file))
    damaged.write_bytes(b"")
    failed_with(run(), damaged.name, code=5)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        pytest.param("x = 1\n", "job", id="no job"),
        pytest.param("def broken(:\n", "job.py", id="syntax error"),
        pytest.param("raise RuntimeError('boom')\n", "boom", id="raises"),
    ],
)
def test_a_file_that_does_not_define_a_job_is_refused(run: Runner, tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "job.py").write_text(text)
    failed_with(run(), word, code=2)


def test_a_job_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    failed_with(twopc("run", str(tmp_path / "nothing.py"), "--bootstrap-servers", "127.0.0.1:1"), "nothing.py", code=2)


@pytest.mark.usefixtures("topics")
def test_a_missing_java_is_said_in_one_line(broker: Broker, tmp_path: Path, run: Runner, name: str) -> None:
    finished = twopc(
        *("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "--checkpoint-dir", str(tmp_path / "ck")),
        JOB_NAME=name,
        PATH=str(tmp_path),
        JAVA_HOME="",
    )
    failed_with(finished, "Java 17", "JAVA_HOME", code=2)


def test_an_option_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    finished = twopc("run", "job.py", "--no-such-option")
    assert finished.code == 2
    assert "--no-such-option" in finished.err
    assert "Traceback" not in finished.err
