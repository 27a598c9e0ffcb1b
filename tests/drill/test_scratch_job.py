"""A scratch job is the user's job, and can't meet it."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.drill.scratch_job import PREFIX, Names, scratch_job, write_scratch_file
from twopc.errors import ConfigurationError
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.transactions.committer import PlainCommitter
from twopc.kafka.transactions.naming import SlotName, parse_transactional_id, transactional_id
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.scratch.own_topic import KeptSource
from twopc.sink import Outcome, Settled

pytestmark = pytest.mark.usefixtures("forgotten_loads")

JOB = """
from twopc import Job, Json, KafkaSink, KafkaSource

job = Job("orders")
job.source(KafkaSource("real-in", value=Json(), group_id="real", bootstrap_servers="there:1")).map(str).sink(
    KafkaSink("real-out", key=Json(), partitioner="source", transactional_id_prefix="real", properties={"linger.ms": 7})
)
"""

NAMES = Names(f"{PREFIX}1")


@pytest.fixture
def job_file(tmp_path: Path) -> str:
    path = tmp_path / "orders_job.py"
    path.write_text(JOB)
    return str(path)


def parts(job_file: str) -> tuple[KafkaSource, KafkaSink]:
    connectors = KafkaConnectors.of(scratch_job(job_file, NAMES.name, [("real-in", 0, 9)]).definition())
    return connectors.sources["source-1"], connectors.sinks["sink-1"]


def test_it_has_the_name_that_its_checkpoints_have(job_file: str) -> None:
    assert scratch_job(job_file, NAMES.name, []).name == "orders"


def test_group_output_and_transactional_ids_are_its_own(job_file: str) -> None:
    source, sink = parts(job_file)
    assert (source.group_id, sink.topic, sink.transactional_id_prefix) == (
        NAMES.group,
        f"{NAMES.name}-out",
        NAMES.transactional_prefix,
    )
    assert all(name.startswith(PREFIX) for name in (NAMES.group, str(sink.topic), NAMES.transactional_prefix))


def test_it_never_takes_an_id_of_the_real_job_over() -> None:
    real = transactional_id("orders", SlotName(AttemptId(1), SubtaskIndex(0), 0))
    assert parse_transactional_id(NAMES.transactional_prefix, real) is None


def test_the_rest_is_the_users(job_file: str) -> None:
    source, sink = parts(job_file)
    real = load_job(job_file)
    assert scratch_job(job_file, NAMES.name, []).definition().steps == real.steps
    assert (source.topics, source.bootstrap_servers, str(source.value)) == (("real-in",), "there:1", "Json()")
    assert (str(sink.key), sink.properties) == ("Json()", {"linger.ms": 7})
    assert sink.partitioner == "source"


def test_it_settles_nothing_of_the_real_job_and_asks_nobody(job_file: str) -> None:
    _, sink = parts(job_file)
    context = JobContext("orders", AttemptId(3), 1, RunSettings(bootstrap_servers="127.0.0.1:1"))
    pending = Committable("real-1-0-0@7", CheckpointId(7), SubtaskIndex(0), {})
    (settled,) = sink.open_committer(context).settle([pending], frozenset())
    assert (settled.committable, settled.outcome) == (pending, Outcome.ALREADY_COMMITTED)


def test_fresh_names_are_nobody_elses() -> None:
    assert Names.fresh() != Names.fresh()


def test_a_process_that_knows_only_the_written_file_gets_the_same_job(job_file: str, tmp_path: Path) -> None:
    ends = {TopicPartition("real-in", 0): Position(9)}
    written = load_job(write_scratch_file(tmp_path, job_file, NAMES, ends))
    assert written.describe() == scratch_job(job_file, NAMES.name, []).describe()
    assert getattr(written.sources["source-1"], "ends", None) == ends


def test_a_job_from_elsewhere_than_kafka_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "files_job.py"
    path.write_text(
        "from twopc import Job, KafkaSource\nfrom file_sink import FileSink\n"
        "job = Job('files')\njob.source(KafkaSource('in')).sink(FileSink('/tmp/never-made'))\n"
    )
    with pytest.raises(ConfigurationError, match=r"can't be drilled: .* but 'sink-1' is a FileSink"):
        scratch_job(str(path), NAMES.name, [])


def test_its_own_transactions_are_settled_where_it_was_interrupted(
    job_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, sink = parts(job_file)
    asked: list[Committable] = []

    def settle(self: PlainCommitter, items: list[Committable], confirmed: frozenset[str]) -> list[Settled]:
        asked.extend(items)
        return [Settled(item, Outcome.COMMITTED, "it was open") for item in items]

    monkeypatch.setattr(PlainCommitter, "settle", settle)
    context = JobContext("orders", AttemptId(3), 1, RunSettings(bootstrap_servers="127.0.0.1:1"))
    real = Committable("real-1-0-0@7", CheckpointId(7), SubtaskIndex(0), {})
    own = Committable(f"{NAMES.transactional_prefix}-2-0-0@8", CheckpointId(8), SubtaskIndex(0), {})
    settled = sink.open_committer(context).settle([real, own], frozenset())
    assert [each.outcome for each in settled] == [Outcome.ALREADY_COMMITTED, Outcome.COMMITTED]
    assert asked == [own]


def test_groups_of_several_sinks_have_the_ids_of_the_real_ones_and_prefixes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the restored checkpoint names is found under the ids of the real job's groups."""
    path = tmp_path / "grouped_job.py"
    path.write_text(
        "from twopc import Job, KafkaSink, KafkaSource\n"
        "job = Job('grouped')\n"
        "orders = job.source(KafkaSource('orders'), name='orders')\n"
        "orders.sink(KafkaSink('one'), name='one')\n"
        "orders.sink(KafkaSink('other'), name='other')\n"
        "orders.sink(KafkaSink('third', transactional_id_prefix='own'), name='third')\n"
    )
    monkeypatch.setattr(LeaderClient, "__init__", lambda *_: None)
    monkeypatch.setattr(LeaderClient, "close", lambda _: None)
    monkeypatch.setattr(LeaderClient, "cluster_id", lambda _: "c")
    context = JobContext("grouped", AttemptId(1), 1, RunSettings(bootstrap_servers="s:1"))
    definition = scratch_job(str(path), NAMES.name, []).definition()
    assert [(group.id, group.sinks) for group in definition.sink.groups(context)] == [
        ("kafka/c/grouped", ("one", "other")),
        ("kafka/c/own", ("third",)),
    ]
    prefixes = {key: each.transactional_id_prefix for key, each in KafkaConnectors.of(definition).sinks.items()}
    assert prefixes == {"one": NAMES.name, "other": NAMES.name, "third": f"{NAMES.name}-no2"}


REKEYED = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("rekeyed")
source = job.source(KafkaSource("real-in", bootstrap_servers="there:1"), name="in")
source.key_by(lambda value: value, name="by-value").sink(KafkaSink("real-out"), name="out")
"""


def test_a_topic_of_the_jobs_own_has_one_in_its_place_that_is_read_without_an_end_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "rekeyed_job.py"
    path.write_text(REKEYED)
    job = scratch_job(str(path), NAMES.name, [("real-in", 0, 9)], [("real-in", 0, 4)], str(tmp_path))
    connectors = KafkaConnectors.of(job.definition())
    source, sink = connectors.sources["by-value-source"], connectors.sinks["by-value-sink"]
    assert isinstance(source, KeptSource)
    assert source.topics == sink.outputs == (NAMES.outputs(connectors)["by-value-sink"],)
    assert (source.group_id, sink.transactional_id_prefix) == (NAMES.group, NAMES.transactional_prefix)
    assert (source.bootstrap_servers, str(source.key)) == ("there:1", str(sink.key))
    assert job.definition().stages == {"in": 0, "by-value-source": 1}


def test_a_job_with_a_broadcast_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broadcast_job.py"
    path.write_text(
        "from twopc import Job, KafkaSink, KafkaSource\n"
        "job = Job('broadcast')\n"
        "known = job.source(KafkaSource('known'), name='known').table('t', broadcast=True)\n"
        "job.source(KafkaSource('in')).join(known, lambda one, other: one).sink(KafkaSink('out'))\n"
    )
    with pytest.raises(ConfigurationError, match=r"can't be drilled: .* read known, for a broadcast table"):
        scratch_job(str(path), NAMES.name, [])
