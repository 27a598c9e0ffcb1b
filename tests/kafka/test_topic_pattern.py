"""Input topics that a pattern names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.kafka.test_planning import CONTEXT, ComingBack
from twopc import ConfigurationError, Job, KafkaSink, KafkaSource, StartingOffsets
from twopc.context import JobContext
from twopc.kafka.clients.control_client import TopicInfo
from twopc.kafka.input.reader import KafkaReader
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.topic_pattern import TopicPattern, checked_pattern
from twopc.protocol.facts import SplitPosition
from twopc.serde import Bytes
from twopc.testing import MemoryRun
from twopc.verify.plan import plan_of

ORDERS = TopicPattern(r"orders-.*", (r".*-test", "orders-old"))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ComingBack:
    """A cluster with topics of one and of two partitions."""
    there = ComingBack(busy=0)
    there.known = {"orders-se": TopicInfo("id-se", 2), "orders-de": TopicInfo("id-de", 1), "other": TopicInfo("o", 1)}
    monkeypatch.setattr("twopc.kafka.input.planner.ControlClient", there)
    return there


def read(source: KafkaSource, *restored: SplitPosition) -> list[str]:
    """Return the splits that are planned, each with its offset."""
    known = {held.split: held for held in restored}
    splits = source.open_planner(CONTEXT).plan(known, bounded=False)
    return [f"{split.id}@{split.begin.position[0]}" for split in splits]


def test_a_pattern_is_of_whole_names() -> None:
    topics = ("orders-se", "my-orders-se", "orders-", "orders")
    assert [topic for topic in topics if ORDERS.matches(topic)] == ["orders-se", "orders-"]


def test_what_is_excluded_is_not_read() -> None:
    topics = ("orders-se-test", "orders-old", "orders-older", "orders-test-se")
    assert [topic for topic in topics if ORDERS.matches(topic)] == ["orders-older", "orders-test-se"]


def test_topics_are_sorted() -> None:
    assert ORDERS.among(["orders-b", "x", "orders-a"]) == ("orders-a", "orders-b")


@pytest.mark.parametrize(("pattern", "exclude"), [("orders-(", ()), ("orders", ["*"]), ("orders", 3)])
def test_what_is_no_regular_expression_is_refused(pattern: str, exclude: Any) -> None:
    with pytest.raises(ConfigurationError, match="for a pattern of topics"):
        checked_pattern(pattern, exclude)


@pytest.mark.parametrize(
    "wrong", [{}, {"topics": "a", "pattern": "b"}, {"topics": "a", "exclude": "b"}, {"exclude": "b"}, {"topics": ()}]
)
def test_a_source_has_topics_or_a_pattern(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="KafkaSource needs"):
        KafkaSource(**wrong)


def test_a_pattern_reads_the_topics_that_are_there(cluster: ComingBack) -> None:
    assert read(KafkaSource(pattern="orders-.*")) == ["orders-de[0]@0", "orders-se[0]@0", "orders-se[1]@0"]
    assert read(KafkaSource(pattern="orders-.*", exclude=".*-se")) == ["orders-de[0]@0"]


def test_a_pattern_that_matches_nothing_is_refused_by_name(cluster: ComingBack) -> None:
    with pytest.raises(ConfigurationError, match="no input topic matches pattern 'bills' without 'old': create one"):
        read(KafkaSource(pattern="bills", exclude="old"))


def test_a_topic_that_is_new_since_the_checkpoint_is_read_from_its_first_record(cluster: ComingBack) -> None:
    latest = KafkaSource(pattern="orders-.*", start=StartingOffsets.latest())
    assert read(latest) == ["orders-de[0]@9", "orders-se[0]@9", "orders-se[1]@9"]
    held = SplitPosition("orders-de[0]", 0, [4, "id-de"])
    assert read(latest, held) == ["orders-de[0]@4", "orders-se[0]@0", "orders-se[1]@0"]


GONE, HELD = SplitPosition("orders-fr[0]", 0, [4, "id-fr"]), SplitPosition("orders-de[0]", 0, [4, "id-de"])


def planned(source: KafkaSource, context: JobContext = CONTEXT) -> dict[str, PartitionSplit]:
    """Return what is read, where a checkpoint stands in a topic that is gone, too."""
    splits = source.open_planner(context).plan({each.split: each for each in (GONE, HELD)}, bounded=False)
    return {split.id: PartitionSplit.from_split(split) for split in splits}


def test_positions_of_a_topic_that_is_gone_are_kept_until_it_is_given_up(
    cluster: ComingBack, caplog: pytest.LogCaptureFixture
) -> None:
    gone = planned(KafkaSource(pattern="orders-.*"))["orders-fr[0]"]
    assert (gone.start, gone.stop, gone.topic_id, gone.gone) == (4, 4, "id-fr", True)
    assert "start once with --drop-inputs orders-fr" in caplog.text
    dropping = replace(CONTEXT, settings=replace(CONTEXT.settings, drop_inputs=("orders-fr",)))
    assert "orders-fr[0]" not in planned(KafkaSource(pattern="orders-.*"), dropping)


def test_a_topic_that_is_back_is_read_on_where_it_was(cluster: ComingBack) -> None:
    gone = PartitionPosition(TopicPartition("orders-fr", 0), "id-fr", Position(4), gone=True).to_split_position()
    source = KafkaSource(pattern="orders-.*")
    read = source.open_planner(CONTEXT).plan({each.split: each for each in (gone, HELD)}, bounded=False)
    cluster.known["orders-fr"] = TopicInfo("id-fr", 1)
    assert [split.id for split in source.open_planner(CONTEXT).added(read)] == ["orders-fr[0]"]
    [back] = [
        PartitionSplit.from_split(split)
        for split in source.open_planner(CONTEXT).plan({gone.split: gone}, bounded=False)
        if split.id == "orders-fr[0]"
    ]
    assert (back.start, back.stop, back.gone) == (4, None, False)
    cluster.known["orders-fr"] = TopicInfo("another", 1)
    with pytest.raises(ConfigurationError, match="deleted and created again"):
        source.open_planner(CONTEXT).added(read)


def test_a_reader_keeps_the_positions_of_what_is_gone_and_asks_nobody_for_it() -> None:
    split = PartitionSplit(TopicPartition("in", 0), "id", Position(4), Position(4), gone=True)
    reader = KafkaReader({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, Bytes(), Bytes(), [split])
    assert reader.poll(0.0, 1) is None
    assert reader.positions() == (SplitPosition("in[0]", 0, [4, "id", {"gone": True}]),)
    assert reader.finished()
    reader.close()


def with_a_pattern() -> Job:
    job = Job("orders")
    job.source(KafkaSource(pattern="orders-.*")).sink(KafkaSink("out", delivery_guarantee="none"))
    return job


def test_who_must_know_the_topics_beforehand_says_so() -> None:
    with pytest.raises(ConfigurationError, match="can't be verified: which topics 'source-1' reads, the pattern"):
        plan_of(with_a_pattern().definition(), [], [], "127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="topics that it names, but here the pattern 'orders-"):
        MemoryRun(with_a_pattern())


def test_a_job_with_a_pattern_is_verified_on_topics_that_are_named() -> None:
    plan = plan_of(with_a_pattern().definition(), ["orders-de", "orders-se"], [], "127.0.0.1:1")
    assert plan.topics == ("orders-de", "orders-se")
