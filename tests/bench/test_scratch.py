from __future__ import annotations

from pathlib import Path

import pytest

from twopc.bench.scratch import rebound, write_job_file
from twopc.errors import ConfigurationError
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.loader.job_loader import load_job

JOB = """
from twopc import Job, KafkaSink, KafkaSource

first = Job("first")
first.source(KafkaSource("real-in", group_id="real")).map(bytes.upper).sink(
    KafkaSink(lambda record: "real-out", transactional_id_prefix="real")
)
second = Job("second")
second.source(KafkaSource("other")).sink(KafkaSink("other-out"))
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else is to find the folders that job files are loaded from here."""
    monkeypatch.setattr("twopc.loader.job_loader._folders", set())


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    path = tmp_path / "user_job.py"
    path.write_text(JOB)
    return f"{path}:first"


def test_the_job_reads_and_writes_other_topics_and_shares_no_name_with_the_real_one(job_file: str) -> None:
    definition = rebound(job_file, name="bench-1", source="a", target="b").definition()
    pipeline = definition.pipeline("tested")
    source, sink = pipeline.source, pipeline.sink
    assert isinstance(source, KafkaSource)
    assert isinstance(sink, KafkaSink)
    assert (definition.name, source.topics, sink.topic) == ("bench-1", ("a",), "b")
    assert (source.group_id, sink.transactional_id_prefix) == (None, None)


def test_the_steps_are_the_users(job_file: str) -> None:
    rebuilt = rebound(job_file, name="bench-1", source="a", target="b").definition()
    assert rebuilt.steps == load_job(job_file).steps


def test_a_process_that_knows_only_the_written_file_gets_the_same_job(job_file: str, tmp_path: Path) -> None:
    written = write_job_file(tmp_path, job_file, name="bench-2", source="a", target="b")
    assert load_job(written).describe() == rebound(job_file, name="bench-2", source="a", target="b").describe()


def test_a_job_with_another_sink_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "files.py"
    path.write_text(
        "from twopc import Job, KafkaSource\nfrom file_sink import FileSink\n"
        "job = Job('files')\njob.source(KafkaSource('in')).sink(FileSink('/tmp/never-made'))\n"
    )
    with pytest.raises(ConfigurationError, match="write with KafkaSink"):
        rebound(str(path), name="n", source="a", target="b")
