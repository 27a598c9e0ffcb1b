"""Functions that take long: checkpoints complete all the same, or the reason is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os, time
from twopc import Job, Json, KafkaSink, KafkaSource

def parsed(value):
    return int(value)

def enrich(number):
    time.sleep(SECONDS)
    return number

def count(state, value):
    return (state or 0) + 1, value

name = os.environ["JOB_NAME"]
job = Job(name).source(KafkaSource(name + "-in")).map(parsed).map(enrich).stateful_map(count, name="n").sink(
    KafkaSink(name + "-out", value=Json())
)
"""
RECORDS = 60
"""Enough to outlast a time-out of checkpoints that a busy machine keeps where nothing is slow."""


@pytest.fixture
def run(
    broker: Broker, tmp_path: Path, topic: Callable[[], str]
) -> Callable[..., tuple[CommandResult, list[bytes | None]]]:
    name = topic()

    def play(seconds: str, *more: str) -> tuple[CommandResult, list[bytes | None]]:
        create_topic(broker.bootstrap_servers, f"{name}-in")
        create_topic(broker.bootstrap_servers, f"{name}-out")
        produce(broker.bootstrap_servers, f"{name}-in", [Write(b"%d" % number, b"k") for number in range(RECORDS)])
        job_file = tmp_path / "job.py"
        job_file.write_text(JOB.replace("SECONDS", seconds))
        finished = twopc(
            *("run", str(job_file), "-b", broker.bootstrap_servers, "--host", "process", "--until-end"),
            *("--checkpoint-dir", str(tmp_path / "checkpoints"), "--checkpoint-interval", "500ms", *more),
            JOB_NAME=name,
        )
        return finished, [record.value for record in read_topic(broker.bootstrap_servers, f"{name}-out")]

    return play


IN_ORDER = [b"%d" % number for number in range(RECORDS)]


@pytest.mark.proof
def test_a_job_whose_first_batch_would_outlast_every_checkpoint_gets_on(
    run: Callable[..., tuple[CommandResult, list[bytes | None]]],
) -> None:
    finished, output = run("0.25", "--checkpoint-timeout", "10s", "--checkpoint-tolerable-failures", "0")
    assert finished.code == 0, finished.err
    assert "trying again" not in finished.err
    assert output == IN_ORDER


@pytest.mark.proof
def test_a_function_that_turns_slow_in_the_middle_of_a_batch_costs_no_checkpoint(
    run: Callable[..., tuple[CommandResult, list[bytes | None]]],
) -> None:
    finished, output = run(
        "0.6 if 20 < number < 40 else 0",
        *("--checkpoint-timeout", "10s", "--checkpoint-tolerable-failures", "0", "--batch-records-min", "60"),
    )
    assert finished.code == 0, finished.err
    assert "trying again" not in finished.err
    assert output == IN_ORDER


@pytest.mark.proof
def test_where_one_record_outlasts_the_time_out_the_function_the_record_and_the_setting_are_named(
    run: Callable[..., tuple[CommandResult, list[bytes | None]]],
) -> None:
    finished, output = run("9 if number == 30 else 0", "--checkpoint-timeout", "3s")
    assert finished.code == 0, finished.err
    assert "map(enrich) at record " in finished.err
    assert "-in[0]@30 for " in finished.err
    assert "--checkpoint-timeout" in finished.err
    assert output == IN_ORDER
