"""A job that reads what it writes is refused, though it names the brokers in two ways."""

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
job.source(KafkaSource({topic!r})).map(bytes.upper).sink(KafkaSink({topic!r}, bootstrap_servers={servers!r}))
"""


def test_a_job_whose_output_is_its_input_by_another_address_is_refused_at_its_start(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name)
    produce(broker.bootstrap_servers, name, [b"a"])
    (tmp_path / "job.py").write_text(JOB.format(topic=name, servers=broker.bootstrap_servers))
    done = twopc(
        *("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "--host", "process", "--until-end"),
        *("--checkpoint-dir", str(tmp_path / "checkpoints")),
    )
    assert done.code == 2, done.err
    assert f"writes '{name}' and 'source-1' reads it" in done.err
    assert [record.value for record in read_topic(broker.bootstrap_servers, name)] == [b"a"]
