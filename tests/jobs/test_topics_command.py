"""`twopc topics`, on a real broker: what is created, listed, read and deleted, and what is refused."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from twopc import cli
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

Topics = Callable[..., Any]


@pytest.fixture
def topics(broker: Broker) -> Topics:
    def invoke(*arguments: str, given: str | bytes | None = None) -> Any:
        command = ["topics", *arguments, "-b", broker.bootstrap_servers]
        return CliRunner().invoke(cli.app, command, prog_name="twopc", input=given)

    return invoke


def lines(answer: Any) -> list[Any]:
    assert answer.exit_code == 0, answer.output
    return [json.loads(line) for line in answer.stdout.splitlines()]


def refusal(answer: Any) -> str:
    assert answer.exception is not None
    return str(answer.exception)


def test_topics_are_created_listed_and_deleted(topics: Topics, topic: Callable[[], str]) -> None:
    one, two = topic(), topic()
    created = topics("create", one, two, "-p", "3", "-r", "1", "--config", "retention.ms=86400000", "-o", "json")
    assert lines(created) == [{"created": [one, two], "partitions": 3}]
    [listed] = lines(topics("list", "-o", "json"))
    mine = {each["topic"]: each for each in listed if each["topic"] in (one, two)}
    assert mine[one].items() >= {"partitions": 3, "replication": 1, "offsets": 0, "internal": False}.items()
    assert one in topics("list").stdout
    assert topics("delete", one, two).stdout == f"deleted {one}, {two}\n"
    [listed] = lines(topics("list", "-o", "json"))
    assert not {one, two} & {each["topic"] for each in listed}


def test_what_brokers_refuse_is_told_in_their_words(topics: Topics, topic: Callable[[], str]) -> None:
    name = topic()
    assert topics("create", name).exit_code == 0
    assert f"topic '{name}' can't be created: Topic '{name}' already exists" in refusal(topics("create", name))
    assert "replication factor" in refusal(topics("create", topic(), "--replication", "3"))
    assert "no.such" in refusal(topics("create", topic(), "--config", "no.such=1"))
    assert "is not NAME=VALUE" in refusal(topics("create", topic(), "--config", "no.such"))
    assert "can't be deleted" in refusal(topics("delete", topic()))
    assert "there is no topic" in refusal(topics("read", topic()))
    assert "has no partition 1" in refusal(topics("read", name, "--partition", "1"))


def test_a_record_is_read_with_all_that_it_has(broker: Broker, topics: Topics, topic: Callable[[], str]) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    headers = (("trace", b"7"), ("raw", b"\xff"), ("empty", None))
    whole = Write(b"va\tlue", key=b"k", partition=1, timestamp=1_357_000_000_000, headers=headers)
    produce(broker.bootstrap_servers, name, [whole, Write(None, key=b"\xfe", partition=1)])
    first, second = lines(topics("read", name, "-o", "json"))
    assert first == {
        "topic": name,
        "partition": 1,
        "offset": 0,
        "timestamp": 1_357_000_000_000,
        "key": "k",
        "value": "va\tlue",
        "headers": [
            {"name": "trace", "value": "7"},
            {"name": "raw", "value_base64": "/w=="},
            {"name": "empty", "value": None},
        ],
    }
    assert (second["key_base64"], second["value"], second["headers"]) == ("/g==", None, [])
    line = f"{name}[1]@0\tk\tva\\tlue\ttrace=7\traw=\\xff\tempty=<null>\n"
    assert topics("read", name).stdout == line + f"{name}[1]@1\t\\xfe\t<null>\n"


def test_what_was_read_can_be_written_and_is_the_same(topics: Topics, topic: Callable[[], str]) -> None:
    first, second = topic(), topic()
    topics("create", first, second)
    given = b'{"key": "a", "value": {"n": 1}, "headers": {"trace": "7"}, "timestamp": 5}\n{"key": "b", "value": null}\n'
    assert topics("write", first, "-i", "json", given=given).stdout == f"{first}: 2 records written\n"
    read = topics("read", first, "-o", "json").stdout
    assert lines(topics("write", second, "-i", "json", "-o", "json", given=read)) == [{"topic": second, "records": 2}]
    assert topics("read", second, "-o", "json").stdout == read.replace(first, second)
    assert topics("read", second).stdout == f'{second}[0]@0\ta\t{{"n":1}}\ttrace=7\n{second}[0]@1\tb\t<null>\n'


def test_what_stands_before_a_line_that_says_no_record_is_written(topics: Topics, topic: Callable[[], str]) -> None:
    name = topic()
    topics("create", name)
    refused = refusal(topics("write", name, "--separator", ":", "--header", "by=hand", given="a:1\nb\nc:3\n"))
    assert (
        refused == "line 2 can't be written: it has no ':' between key and value (--separator); 1 before it are written"
    )
    assert topics("read", name).stdout == f"{name}[0]@0\ta\t1\tby=hand\n"


def test_a_topic_that_is_not_there_is_not_made_by_a_write(topics: Topics, topic: Callable[[], str]) -> None:
    name = topic()
    assert f"create it (twopc topics create {name}" in refusal(topics("write", name, given="1\n"))
    assert "there is no topic" in refusal(topics("read", name))


def test_reading_ends_where_the_topic_ended_or_after_so_many(
    broker: Broker, topics: Topics, topic: Callable[[], str]
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    produce(broker.bootstrap_servers, name, (Write(b"%d" % n, partition=n % 2) for n in range(5_000)))
    assert len(lines(topics("read", name, "-o", "json"))) == 5_000
    assert len(lines(topics("read", name, "-o", "json", "--partition", "1", "-n", "7"))) == 7
    assert topics("read", name, "--from-end").stdout == ""
    assert topics("read", name, "--count").stdout == f"{name}: 5,000 records\n"
    [counted] = lines(topics("read", name, "--count", "-o", "json"))
    assert counted == {"topic": name, "records": 5_000, "partitions": {"0": 2_500, "1": 2_500}}


def test_what_is_not_committed_is_read_only_by_who_asks_for_it(
    broker: Broker, topics: Topics, topic: Callable[[], str]
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, b"open")
    assert producer.flush(60) == 0
    try:
        assert topics("read", name).stdout == ""
        assert topics("read", name, "--read-uncommitted").stdout == f"{name}[0]@0\t<null>\topen\n"
    finally:
        producer.commit_transaction(60)
    assert topics("read", name).stdout == f"{name}[0]@0\t<null>\topen\n"


def test_following_reads_what_is_written_later(broker: Broker, topics: Topics, topic: Callable[[], str]) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name)
    produce(broker.bootstrap_servers, name, [b"before"])
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            produce(broker.bootstrap_servers, name, [b"later"])
            time.sleep(0.1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        followed = lines(topics("read", name, "--from-end", "--follow", "-n", "3", "-o", "json"))
    finally:
        ended.set()
        writer.join()
    assert [each["value"] for each in followed] == ["later"] * 3
