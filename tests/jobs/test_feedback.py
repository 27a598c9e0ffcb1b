"""A job that reads what it writes is told so by the command that runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job({topic!r})
job.source(KafkaSource({topic!r})).map(bytes.upper).sink(KafkaSink({topic!r}))
"""


def test_a_job_whose_output_is_its_input_runs_and_is_warned(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name)
    produce(broker.bootstrap_servers, name, [b"a"])
    (tmp_path / "job.py").write_text(JOB.format(topic=name))
    done = twopc(
        *("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "--host", "process", "--until-end"),
        *("--checkpoint-dir", str(tmp_path / "checkpoints")),
    )
    assert done.code == 0, done.err
    assert f"'{name}' is input and output of this job" in done.err
    assert [record.value for record in read_topic(broker.bootstrap_servers, name)] == [b"a", b"A"]
