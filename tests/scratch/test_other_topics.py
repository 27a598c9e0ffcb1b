from __future__ import annotations

from pathlib import Path

import pytest

from twopc.errors import ConfigurationError
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.repartition import RepartitionSink
from twopc.loader.job_loader import load_job
from twopc.scratch.job_file import write_job_file
from twopc.scratch.other_topics import rebound
from twopc.scratch.own_topic import KeptSource

pytestmark = pytest.mark.usefixtures("forgotten_loads")

JOB = """
from twopc import Job, KafkaSink, KafkaSource

first = Job("first")
first.source(KafkaSource("real-in", group_id="real")).map(bytes.upper).sink(
    KafkaSink(lambda record: "real-out", transactional_id_prefix="real")
)
second = Job("second")
second.source(KafkaSource("other")).sink(KafkaSink("other-out"))
"""


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    path = tmp_path / "user_job.py"
    path.write_text(JOB)
    return f"{path}:first"


def test_the_job_reads_and_writes_other_topics_and_shares_no_name_with_the_real_one(job_file: str) -> None:
    definition = rebound(job_file, name="bench-1", topics={"source-1": "a", "sink-1": "b"}).definition()
    connectors = KafkaConnectors.of(definition)
    source, sink = connectors.sources["source-1"], connectors.sinks["sink-1"]
    assert (definition.name, source.topics, sink.topic) == ("bench-1", ("a",), "b")
    assert (source.group_id, sink.transactional_id_prefix) == (None, "bench-1")


def test_each_source_has_a_topic_and_sinks_of_one_topic_or_prefix_go_on_sharing_it(tmp_path: Path) -> None:
    path = tmp_path / "routed_job.py"
    path.write_text(
        "from twopc import Job, KafkaSink, KafkaSource\n"
        "job = Job('routed')\n"
        "web = job.source(KafkaSource('web'), name='web')\n"
        "app = job.source(KafkaSource('app'), name='app')\n"
        "web.sink(KafkaSink('all'), name='one')\n"
        "app.sink(KafkaSink('all'), name='other')\n"
        "app.sink(KafkaSink('else', transactional_id_prefix='own'), name='third')\n"
    )
    connectors = KafkaConnectors.of(rebound(str(path), name="b").definition())
    assert {key: each.topics for key, each in connectors.sources.items()} == {"web": ("b-in",), "app": ("b-in-no2",)}
    assert {key: each.topic for key, each in connectors.sinks.items()} == {
        "one": "b-out",
        "other": "b-out",
        "third": "b-out-no2",
    }
    assert {key: each.transactional_id_prefix for key, each in connectors.sinks.items()} == {
        "one": "b",
        "other": "b",
        "third": "b-no2",
    }


REKEYED = """
from twopc import Job, Json, KafkaSink, KafkaSource

def pair(value, known):
    return value, known

job = Job("rekeyed")
products = job.source(KafkaSource("products", bootstrap_servers="there:1"), name="products")
web = job.source(KafkaSource("web"), name="web")
keyed = web.key_by(lambda value: value, name="by-value").map(bytes.upper)
keyed.join(products.table("known", broadcast=True), pair).sink(KafkaSink("out", value=Json()), name="out")
"""


def test_what_the_job_writes_for_itself_it_reads_where_it_writes_it_and_deletes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rekeyed_job.py"
    path.write_text(REKEYED)
    definition = rebound(str(path), name="b").definition()
    connectors = KafkaConnectors.of(definition)
    source, sink = connectors.sources["by-value-source"], connectors.sinks["by-value-sink"]
    assert isinstance(source, KeptSource)
    assert isinstance(sink, RepartitionSink)
    assert source.topics == sink.outputs == ("b-out",)
    # As many partitions as the scratch inputs have.
    assert [each.topics for each in sink.inputs] == [("b-in",)]
    assert (definition.stages, sink.transactional_id_prefix) == ({"web": 0, "by-value-source": 1}, "b")


def test_what_a_broadcast_table_is_made_of_is_read_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rekeyed_job.py"
    path.write_text(REKEYED)
    products = KafkaConnectors.of(rebound(str(path), name="b").definition()).broadcasts["products"]
    assert (products.topics, products.bootstrap_servers) == (("products",), "there:1")


def test_the_steps_are_the_users(job_file: str) -> None:
    rebuilt = rebound(job_file, name="bench-1", topics={"source-1": "a", "sink-1": "b"}).definition()
    assert rebuilt.steps == load_job(job_file).steps


def test_a_process_that_knows_only_the_written_file_gets_the_same_job(job_file: str, tmp_path: Path) -> None:
    written = write_job_file(tmp_path, rebound, job_file, name="bench-2", topics={"source-1": "a", "sink-1": "b"})
    assert (
        load_job(written).describe()
        == rebound(job_file, name="bench-2", topics={"source-1": "a", "sink-1": "b"}).describe()
    )


def test_a_job_with_another_sink_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "files.py"
    path.write_text(
        "from twopc import Job, KafkaSource\nfrom file_sink import FileSink\n"
        "job = Job('files')\njob.source(KafkaSource('in')).sink(FileSink('/tmp/never-made'))\n"
    )
    with pytest.raises(ConfigurationError, match="write with KafkaSink"):
        rebound(str(path), name="n", topics={"source-1": "a", "sink-1": "b"})
