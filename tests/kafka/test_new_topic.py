"""Output topics that a job makes, if they aren't there."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

import pytest

from tests.kafka.kit import DrivenSink
from twopc import KafkaSink, NewTopic, Record
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.topics.new_topic import merged

FOUR = NewTopic(partitions=4, replication=1, config={"retention.ms": 60_000, "preallocate": True})


def chosen(record: Record) -> str:
    return "out"


@pytest.mark.parametrize("wrong", [{"partitions": 0}, {"partitions": "4"}, {"replication": 0}, {"replication": -2}])
def test_numbers_that_no_topic_has_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"NewTopic needs {next(iter(wrong))}=1 or more"):
        NewTopic(**wrong)


def test_settings_are_written_as_brokers_take_them() -> None:
    assert FOUR.settings == {"retention.ms": "60000", "preallocate": "true"}


def test_what_is_no_new_topic_is_refused_with_what_one_is() -> None:
    create: Any = {"partitions": 4}
    with pytest.raises(ConfigurationError, match=r"such as NewTopic\(partitions=4\)"):
        KafkaSink("out", create=create)


def test_a_topic_that_a_function_chooses_is_not_created() -> None:
    with pytest.raises(ConfigurationError, match="a function chooses it for each record"):
        KafkaSink(chosen, create=FOUR)


def test_two_sinks_that_want_one_topic_differently_are_refused() -> None:
    assert merged({"a": FOUR}, {"a": FOUR, "b": FOUR}) == {"a": FOUR, "b": FOUR}
    with pytest.raises(ConfigurationError, match="want it created differently"):
        merged({"a": FOUR}, {"a": NewTopic(partitions=5)})


@pytest.fixture
def name() -> str:
    """Return the name of a topic that isn't there."""
    return f"new-{uuid4().hex[:8]}"


def partitions_of(servers: str, topic: str) -> int | None:
    with Cluster(servers).client() as client:
        found = client.topics([topic])
        return found[topic].partitions if topic in found else None


@pytest.mark.broker
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "none"])
def test_a_topic_that_is_not_there_is_made_before_a_record_is_read(
    servers: str, job: str, name: str, guarantee: str
) -> None:
    driven = DrivenSink(servers, job, name, input_topic=name, create=FOUR, delivery_guarantee=guarantee)
    driven.start_attempt()
    driven.die()
    assert partitions_of(servers, name) == 4


@pytest.mark.broker
def test_what_a_sink_that_shares_the_transaction_wants_is_made_too(servers: str, job: str, out: str, name: str) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out)
    driven.committer.join(KafkaSink(name, create=FOUR))
    driven.committer.abort_lingering()
    assert partitions_of(servers, name) == 4


@pytest.mark.broker
def test_a_topic_that_is_there_is_left_as_it_is(servers: str, job: str, out: str) -> None:
    driven = DrivenSink(servers, job, out, input_topic=out, create=FOUR)
    for _ in range(2):
        driven.start_attempt()
        driven.die()
    assert partitions_of(servers, out) == 1


@pytest.mark.broker
def test_a_topic_of_which_the_brokers_refuse_a_setting_is_named(servers: str, job: str, name: str) -> None:
    driven = DrivenSink(servers, job, name, input_topic=name, create=NewTopic(config={"no.such.setting": 1}))
    with pytest.raises(ConfigurationError, match=rf"topic '{name}' can't be created: .*no\.such\.setting"):
        driven.start_attempt()
    assert partitions_of(servers, name) is None


@pytest.mark.broker
def test_of_several_that_create_it_at_once_one_does_and_all_go_on(servers: str, name: str) -> None:
    start, created = threading.Barrier(4, timeout=60), []

    def create() -> None:
        with Cluster(servers).client() as client:
            start.wait()
            created.append(client.ensure_topic(name, 3))

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(created) == [False, False, False, True]
    assert partitions_of(servers, name) == 3
