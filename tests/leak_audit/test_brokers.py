"""Everything that a job may leave on a broker, planted on a real one and found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from kafka import KafkaAdminClient
from kafka.admin import AbortTransactionSpec
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.structs import TopicPartition

from tests.leak_audit import Finding, Place, Problem, look, report, wait_until_clean
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port
from twopc.testing.topics import create_topic

pytestmark = pytest.mark.broker

VERIFICATION = "transaction.partition.verification.enable"
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
"""What a broker says that still verifies."""
HANGING_PRODUCER = 987_654


@pytest.fixture
def place(broker: Broker, topic: Callable[[], str]) -> Place:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    return Place(job=name, bootstrap_servers=broker.bootstrap_servers, topics=(name,))


def producer(place: Place, transactional_id: str) -> Producer:
    made = Producer({"bootstrap.servers": place.bootstrap_servers, "transactional.id": transactional_id})
    made.init_transactions()
    return made


def write(place: Place, writer: Producer) -> None:
    writer.begin_transaction()
    writer.produce(place.topics[0], b"value", partition=0)
    writer.flush()


def by_problem(found: list[Finding]) -> dict[Problem, Finding]:
    assert len({finding.problem for finding in found}) == len(found), report(found)
    return {finding.problem: finding for finding in found}


def test_committed_and_aborted_transactions_leave_nothing(place: Place) -> None:
    writer = producer(place, f"{place.job}-0-0")
    write(place, writer)
    writer.commit_transaction()
    write(place, writer)
    writer.abort_transaction()
    assert wait_until_clean(place) == []


def test_an_open_transaction_is_found_with_what_it_hides(place: Place) -> None:
    writer = producer(place, f"{place.job}-0-0")
    write(place, writer)
    found = by_problem(look(place))
    assert set(found) == {Problem.OPEN_TRANSACTION, Problem.HIDDEN_RECORDS}
    assert found[Problem.OPEN_TRANSACTION].where == f"{place.job}-0-0"
    assert found[Problem.HIDDEN_RECORDS].where == f"{place.topics[0]}-0"
    assert found[Problem.HIDDEN_RECORDS].what == "last stable offset 0, high watermark 1"
    writer.abort_transaction()
    assert wait_until_clean(place) == []


def test_the_transaction_of_another_prefix_is_only_seen_by_what_it_hides(place: Place) -> None:
    writer = producer(place, f"{place.job}x-0-0")
    write(place, writer)
    assert {finding.problem for finding in look(place)} == {Problem.HIDDEN_RECORDS}
    writer.abort_transaction()


def test_a_topic_that_is_not_there_is_found_and_not_made(broker: Broker, topic: Callable[[], str]) -> None:
    place = Place(topic(), broker.bootstrap_servers, topics=(topic(),))
    for _ in range(2):
        assert [(found.problem, found.where) for found in look(place)] == [(Problem.MISSING_TOPIC, place.topics[0])]


def test_a_transaction_that_no_coordinator_knows_is_found(place: Place) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=place.bootstrap_servers.split(","))) as admin:
        with without_verification(place.bootstrap_servers):
            plant_hanging_transaction(admin, place.topics[0])
        found = by_problem(look(place))
        assert set(found) == {Problem.HANGING_TRANSACTION, Problem.HIDDEN_RECORDS}
        assert found[Problem.HANGING_TRANSACTION].what == f"from offset 0, by producer id {HANGING_PRODUCER}"
        admin.abort_transaction(AbortTransactionSpec(TopicPartition(place.topics[0], 0), HANGING_PRODUCER, 0))
    assert wait_until_clean(place) == []


def test_brokers_that_do_not_answer_are_a_finding() -> None:
    place = Place("job", f"127.0.0.1:{free_port()}", topics=("out",))
    assert [found.problem for found in look(place)] == [Problem.SILENT_BROKERS]


@contextmanager
def without_verification(servers: str) -> Iterator[None]:
    """Let brokers take transactional records for which nobody told the transaction coordinator."""
    client = AdminClient({"bootstrap.servers": servers})
    brokers = client.list_topics(timeout=60).brokers

    def alter(value: str) -> None:
        entry = ConfigEntry(VERIFICATION, value, incremental_operation=AlterConfigOpType.SET)
        for broker in brokers:
            resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
            client.incremental_alter_configs([resource])[resource].result(60)

    alter("false")
    try:
        yield
    finally:
        alter("true")


def plant_hanging_transaction(admin: Any, topic: str) -> None:
    """Produce what a late request of an ended transaction is: transactional records that nothing will decide."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=HANGING_PRODUCER,
        producer_epoch=0,
        base_sequence=0,
        batch_size=1_000,
    )
    builder.append(0, timestamp=1_357_000_000_000, key=None, value=b"late", headers=[])
    part = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=bytes(builder.build()))
    request = ProduceRequest(
        transactional_id="late",
        acks=-1,
        timeout_ms=60_000,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[part])],
        max_version=9,
    )
    for _ in range(600):
        answer = admin._manager.run(lambda client: client._manager.send(request), admin)
        code = answer.responses[0].partition_responses[0].error_code
        if code not in (INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING):
            break
        time.sleep(0.1)  # a broker hears of its settings some time after they were taken, and perhaps while it verifies
    assert code == 0, answer
