"""The small jobs of `examples/`, run unmodified by `twopc run` on plain processes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Read, Write, create_topic, delete_topic, produce, read_topic

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.broker


class Topics:
    """The topics that the examples name, made anew for one test."""

    def __init__(self, servers: str, *names: str) -> None:
        self.servers = servers
        self.names = names

    def __enter__(self) -> Topics:
        for name in self.names:
            create_topic(self.servers, name, 2)
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names:
            delete_topic(self.servers, name)

    def fill(self, topic: str, *records: Write) -> None:
        produce(self.servers, topic, records)

    def read(self, topic: str) -> list[Read]:
        return read_topic(self.servers, topic)


def run(broker: Broker, job: str, folder: Path, parallelism: int = 2) -> None:
    finished = twopc(
        *("run", str(EXAMPLES / job), "--bootstrap-servers", broker.bootstrap_servers),
        *("--checkpoint-dir", str(folder / "checkpoints"), "--parallelism", str(parallelism)),
        *("--host", "process", "--checkpoint-interval", "500ms", "--until-end"),
    )
    assert finished.code == 0, finished.err


def test_upper(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "out") as topics:
        topics.fill("in", *(Write(b"a%d" % number, key=b"%d" % number) for number in range(1000)))
        run(broker, "upper.py", tmp_path)
        assert Counter(record.value for record in topics.read("out")) == Counter(b"A%d" % n for n in range(1000))


def test_the_same_command_goes_on_with_what_came_since(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "out") as topics:
        for half in (b"first", b"second"):
            topics.fill("in", *(Write(half) for _ in range(10)))
            run(broker, "upper.py", tmp_path)
        assert Counter(record.value for record in topics.read("out")) == {b"FIRST": 10, b"SECOND": 10}


@pytest.mark.proof
def test_count_by_key(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "out") as topics:
        for _ in range(2):
            topics.fill("in", *(Write(b"x", key=b"k%d" % (number % 7)) for number in range(700)))
            run(broker, "count_by_key.py", tmp_path)
        counts: dict[bytes | None, list[int]] = defaultdict(list)
        for record in topics.read("out"):
            counts[record.key].append(int(record.value or b"0"))
        assert counts == {b"k%d" % key: list(range(1, 201)) for key in range(7)}


@pytest.mark.proof
def test_keep_even(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "out") as topics:
        headers = (("h", b"1"),)
        topics.fill(
            "in",
            *(
                Write(
                    json.dumps({"n": number}).encode(),
                    key=b"%d" % number,
                    timestamp=1_000_000 + number,
                    headers=headers,
                )
                for number in range(100)
            ),
        )
        run(broker, "keep_even.py", tmp_path)
        found = sorted(topics.read("out"), key=lambda record: record.timestamp)
        assert [json.loads(record.value or b"") for record in found] == [
            {"n": n, "half": n // 2} for n in range(0, 100, 2)
        ]
        assert [(record.key, record.timestamp, record.headers) for record in found[:2]] == [
            (b"0", 1_000_000, headers),
            (b"2", 1_000_002, headers),
        ]


@pytest.mark.proof
def test_split_words(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "in-2", "words-a-m", "words-n-z") as topics:
        topics.fill("in", Write(b"Apple zebra"), Write(b"mango"))
        topics.fill("in-2", Write(b"north apple"))
        run(broker, "split_words.py", tmp_path)
        assert Counter(record.key for record in topics.read("words-a-m")) == {b"Apple": 1, b"mango": 1, b"apple": 1}
        assert Counter(record.key for record in topics.read("words-n-z")) == {b"zebra": 1, b"north": 1}


def test_an_empty_input_ends_at_once_with_a_final_checkpoint(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "out") as topics:
        run(broker, "upper.py", tmp_path)
        assert topics.read("out") == []
        listed = twopc("checkpoints", "list", "--checkpoint-dir", str(tmp_path / "checkpoints"), "-o", "json")
        assert json.loads(listed.out)[-1]["kind"] == "final"


@pytest.mark.proof
def test_more_subtasks_than_partitions_are_harmless(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "out") as topics:
        topics.fill("in", Write(b"a"), Write(b"b"))
        run(broker, "upper.py", tmp_path, 4)
        assert Counter(record.value for record in topics.read("out")) == {b"A": 1, b"B": 1}


@pytest.mark.proof
def test_keyed_state_survives_a_change_of_parallelism(broker: Broker, tmp_path: Path) -> None:
    with Topics(broker.bootstrap_servers, "in", "out") as topics:
        for parallelism in (2, 1, 3):
            topics.fill("in", *(Write(b"x", key=b"k%d" % (number % 5)) for number in range(50)))
            run(broker, "count_by_key.py", tmp_path, parallelism)
        counts: dict[bytes | None, list[int]] = defaultdict(list)
        for record in topics.read("out"):
            counts[record.key].append(int(record.value or b"0"))
        assert counts == {b"k%d" % key: list(range(1, 31)) for key in range(5)}
