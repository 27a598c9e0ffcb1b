"""The topic of a job's own that a key_by goes through, without a broker: its ends, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from tests.kafka.kit import drain
from twopc import Job, KafkaSink, KafkaSource, StartingOffsets, String
from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.clients.control_client import EARLIEST, TopicInfo
from twopc.kafka.clients.topic_client import TopicClient
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.repartition import RepartitionKey, RepartitionSink, RepartitionSource, RepartitionTopic
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

SETTINGS = RunSettings(bootstrap_servers="nowhere:1")


def keyed(source: KafkaSource, sink: KafkaSink, properties: Mapping[str, Any] | None = None) -> JobDefinition:
    job = Job("job", properties=properties)
    return job.source(source).key_by(len, name="k").sink(sink).definition()


def ends(definition: JobDefinition) -> tuple[RepartitionSink, KafkaSource]:
    sink, source = definition.sinks["k-sink"], definition.sources["k-source"]
    assert isinstance(sink, RepartitionSink)
    assert isinstance(source, KafkaSource)
    return sink, source


def test_it_writes_with_the_settings_of_the_sinks_that_it_shares_a_transaction_with() -> None:
    sink, _ = ends(keyed(KafkaSource("in"), KafkaSink("out", properties={"linger.ms": 1}, transactional_id_prefix="p")))
    assert (sink.properties, sink.transactional_id_prefix) == ({"linger.ms": 1}, "p")


def test_it_writes_for_itself_where_the_sinks_have_no_transaction_or_other_brokers() -> None:
    ways: list[dict[str, Any]] = [{"delivery_guarantee": "at_least_once"}, {"bootstrap_servers": "other:1"}]
    for options in ways:
        sink, _ = ends(keyed(KafkaSource("in"), KafkaSink("out", properties={"linger.ms": 1}, **options)))
        assert sink.properties == {}
        assert sink.delivery_guarantee.value == "exactly_once"


def test_it_reads_as_the_source_before_it_does() -> None:
    before = KafkaSource("in", group_id="g", bootstrap_servers="b:1", properties={"fetch.min.bytes": 7})
    sink, source = ends(keyed(before, KafkaSink("out")))
    assert (source.group_id, source.bootstrap_servers, source.properties) == ("g", "b:1", before.properties)
    assert sink.bootstrap_servers == "b:1"


def test_it_goes_on_where_the_group_stands_as_the_inputs_do() -> None:
    _, source = ends(keyed(KafkaSource("in"), KafkaSink("out")))
    assert source.start == StartingOffsets.group_offsets()


def test_what_is_left_of_before_is_passed_where_an_input_is_read_anew() -> None:
    _, source = ends(keyed(KafkaSource("in", start=StartingOffsets.earliest()), KafkaSink("out")))
    assert source.start == StartingOffsets.latest()


def test_it_gets_at_brokers_as_the_whole_job_does() -> None:
    definition = keyed(KafkaSource("in"), KafkaSink("out"), {"security.protocol": "SSL"})
    sink, source = ends(definition)
    assert sink.properties == source.properties == {"security.protocol": "SSL"}
    assert [each.properties for each in sink.inputs] == [{"security.protocol": "SSL"}]


def test_a_job_without_a_kafka_source_is_told_what_key_by_needs() -> None:
    class Elsewhere(KafkaSource):
        def repartitioned(self, through: Any) -> None:  # type: ignore[override]
            return None

    with pytest.raises(ConfigurationError, match="on the cluster of a KafkaSource before it, and there is none"):
        Job("job").source(Elsewhere("in")).key_by(len, name="k")


def test_what_policies_say_behind_it_is_what_they_say_before_it() -> None:
    assert [str(each.on_error) for each in keyed(KafkaSource("in"), KafkaSink("out")).operators if each.behind] == [
        "Fail()"
    ]


def test_another_source_that_reads_its_own_topic_is_refused_and_the_one_behind_it_is_not() -> None:
    assert keyed(KafkaSource("in"), KafkaSink("out")).sources_behind("k-sink") == {"k-source"}
    with pytest.raises(ConfigurationError, match="writes 'job-k-repartition' and 'source-1' reads it"):
        keyed(KafkaSource(pattern="in|job-.*"), KafkaSink("out"))


def test_whoever_judges_the_job_knows_its_own_topic_from_what_others_write_and_read() -> None:
    connectors = KafkaConnectors.only(keyed(KafkaSource("in"), KafkaSink("out")), "drilled")
    assert dict(connectors.own) == {"k-source": "k-sink"}
    assert (list(connectors.inputs), list(connectors.outputs)) == (["source-1"], ["sink-1"])


@pytest.mark.parametrize("data", [b"text", b"\xff\xff\xff", b'\xff{"a":1}', None])
def test_the_form_of_a_key_is_that_of_one_key_only(data: bytes | None) -> None:
    serde = RepartitionKey()
    assert serde.serialize(serde.deserialize(data)) == data


def test_a_text_key_is_written_as_any_producer_writes_it() -> None:
    assert RepartitionKey().serialize("ü") == String().serialize("ü")


class Brokers:
    """A TopicClient, as far as it is asked."""

    def __init__(self, partitions: int, cleanup: str | None = "delete") -> None:
        self.partitions, self.cleanup = partitions, cleanup

    def topics(self, names: list[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo("id", self.partitions) for name in names}

    def settings_of(self, name: str, names: list[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, self.cleanup)


def ensure(topic: RepartitionTopic, brokers: Brokers) -> None:
    topic.ensure("job-k-repartition", cast("TopicClient", brokers), SETTINGS)


def test_a_topic_that_is_there_stays_as_it_is_unless_the_job_asks_for_another() -> None:
    ensure(RepartitionTopic((), None), Brokers(3))
    ensure(RepartitionTopic((), 3), Brokers(3))
    with pytest.raises(ConfigurationError, match=r"has 3 partitions, but its key_by says partitions=4"):
        ensure(RepartitionTopic((), 4), Brokers(3))


def test_a_topic_that_is_compacted_is_refused_where_that_can_be_seen() -> None:
    ensure(RepartitionTopic((), None), Brokers(3, None))
    with pytest.raises(ConfigurationError, match=r"cleanup.policy=delete,compact, which deletes records"):
        ensure(RepartitionTopic((), None), Brokers(3, "delete,compact"))


@pytest.mark.broker
def test_what_no_kept_checkpoint_reads_again_is_deleted_and_nothing_else(
    broker: Broker, topic: Callable[[], str]
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    produce(broker.bootstrap_servers, name, (Write(b"%d" % n, partition=n % 2) for n in range(10)))
    source = RepartitionSource(name)
    context = JobContext("job", AttemptId(1), 1, RunSettings(bootstrap_servers=broker.bootstrap_servers))
    with TopicClient(broker.bootstrap_servers, {}) as client:
        topic_id = client.topics([name])[name].topic_id

        def held(partition: int, offset: int, of: str = topic_id) -> SplitPosition:
            return PartitionPosition(TopicPartition(name, partition), of, Position(offset)).to_split_position()

        source.forget(context, [held(0, 4), held(0, 2), held(1, 0)])
        firsts = client.offsets({TopicPartition(name, number): EARLIEST for number in (0, 1)})
        assert sorted(firsts.values()) == [0, 2]
        source.forget(context, [held(0, 2), held(1, 3, of="another topic of this name")])
        assert client.offsets({TopicPartition(name, 1): EARLIEST}) == {TopicPartition(name, 1): 0}


@pytest.mark.broker
def test_a_stage_ends_behind_what_was_written_before_though_no_reader_sees_it_yet(
    broker: Broker, topic: Callable[[], str]
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    create_topic(servers, name)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(name, b"value", b"key")
    producer.flush()
    source, settings = RepartitionSource(name), RunSettings(bootstrap_servers=servers)
    with source.open_planner(JobContext("job", AttemptId(1), 1, settings)) as planner:
        splits = planner.plan({}, bounded=False)
    reader = source.open_reader(SubtaskContext("job", AttemptId(1), 1, settings, SubtaskIndex(0)), splits)
    with closing(reader):
        assert reader.bound()
        assert reader.poll(0.5, 10) is None
        assert not reader.finished()
        producer.commit_transaction()
        assert drain(reader) == [b"value"]
