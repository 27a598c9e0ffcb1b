"""Planning where to read, at brokers that do not answer every question at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import pytest

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.control_client import EARLIEST, GroupOffset, TopicInfo
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId

IN = TopicPartition("in", 0)
CONTEXT = JobContext("orders", AttemptId(1), 1, RunSettings(bootstrap_servers="127.0.0.1:9092"))


class ComingBack:
    """A broker that has just come back: the group's coordinator is not known yet for the first `busy` questions."""

    def __init__(self, busy: int) -> None:
        self.busy = busy
        self.known = {"in": TopicInfo("id-of-in", 1)}

    def __call__(self, *_: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        return {name: self.known[name] for name in names if name in self.known}

    def topic_names(self) -> list[str]:
        return list(self.known)

    def offsets(self, at: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position]:
        return {partition: Position(0 if when == EARLIEST else 9) for partition, when in at.items()}

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Position | None]:
        return {}

    def topic_operations(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        return dict.fromkeys(names, frozenset(["Read"]))

    def group_operations(self, group: str) -> frozenset[str]:
        return frozenset(["Read"])

    def group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        self.busy -= 1
        if self.busy >= 0:
            raise Unavailable("NotCoordinatorError")
        return {IN: GroupOffset(Position(5), "")} if IN in partitions else {}


def test_a_group_whose_coordinator_is_not_known_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.kafka.input.planner.ControlClient", ComingBack(busy=2))
    [split] = KafkaSource("in").open_planner(CONTEXT).plan({}, bounded=True)
    assert (split.begin, split.stop[0]) == (SplitPosition("in[0]", 0, [5, "id-of-in"]), 9)


def test_brokers_that_go_on_not_answering_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.kafka.input.planner.PLAN_BUDGET_SECONDS", 0.01)
    monkeypatch.setattr("twopc.kafka.input.planner.ControlClient", ComingBack(busy=1_000))
    with pytest.raises(Unavailable, match="NotCoordinatorError"):
        KafkaSource("in").open_planner(CONTEXT).plan({}, bounded=True)


def test_a_topic_that_is_not_there_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.kafka.input.planner.ControlClient", ComingBack(busy=0))
    with pytest.raises(ConfigurationError, match="input topic 'another' isn't there"):
        KafkaSource("another").open_planner(CONTEXT).plan({}, bounded=True)
