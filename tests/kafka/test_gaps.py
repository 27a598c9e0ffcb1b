"""Input that was deleted before it was read: refused, given up by name, and kept in the positions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kafka.test_planning import CONTEXT, ComingBack
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.kafka.clients.control_client import EARLIEST, TopicInfo
from twopc.kafka.positions.gaps import InputGap, accepted_gaps, refuse_gaps
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit, gaps_of
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition

IN, IN1 = TopicPartition("in", 0), TopicPartition("in", 1)
GAP = InputGap(IN, Position(100), Position(120))


def test_a_gap_is_written_as_the_message_says_it() -> None:
    other = InputGap(TopicPartition("or.ders-x_1", 12), Position(0), Position(7))
    assert accepted_gaps([str(GAP), str(other)]) == (GAP, other)
    assert accepted_gaps(()) == ()


@pytest.mark.parametrize("text", ["in", "in[0]", "in[0]@100", "in[x]@1-2", "in[0]@120-100", "in[0]@5-5", "in[0]@-1-5"])
def test_what_names_no_gap_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"names no gap: write TOPIC\[PARTITION\]@FROM-TO"):
        accepted_gaps([text])


def test_all_gaps_are_in_the_advice_those_that_were_accepted_too() -> None:
    other = InputGap(IN1, Position(3), Position(4))
    refuse_gaps([GAP, other], [GAP, other])
    with pytest.raises(ConfigurationError) as refused:
        refuse_gaps([GAP, other], [GAP])
    assert str(refused.value).startswith("in[1] should be read from offset 3, but its first record is at 4 now: 1 ")
    assert str(refused.value).endswith("say it once: --accept-gap in[0]@100-120,in[1]@3-4")


def test_who_gives_up_more_gives_up_less_and_nothing_from_another_offset_on() -> None:
    refuse_gaps([GAP], [replace(GAP, end=Position(150))])
    for accepted in (replace(GAP, end=Position(119)), replace(GAP, first=Position(90)), replace(GAP, partition=IN1)):
        with pytest.raises(ConfigurationError, match="should be read from offset 100"):
            refuse_gaps([GAP], [accepted])


class Deleting(ComingBack):
    """Brokers with two partitions whose first records are at these offsets."""

    def __init__(self, **firsts: int) -> None:
        super().__init__(0)
        self.known = {"in": TopicInfo("id", 2)}
        self.firsts = {IN: firsts.get("in0", 0), IN1: firsts.get("in1", 0)}

    def offsets(self, at: dict[TopicPartition, int]) -> dict[TopicPartition, Position]:  # type: ignore[override]
        return {each: Position(self.firsts[each] if when == EARLIEST else 500) for each, when in at.items()}


def test_a_gap_that_is_given_up_stands_in_the_position_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [PartitionPosition(each, "id", Position(100)) for each in (IN, IN1)]

    def plan(accepted: str, **firsts: int) -> list[PartitionSplit]:
        monkeypatch.setattr("twopc.kafka.input.planner.ControlClient", Deleting(**firsts))
        context = replace(
            CONTEXT, settings=replace(CONTEXT.settings, accept_gap=tuple(filter(None, accepted.split(","))))
        )
        known: dict[str, SplitPosition] = {str(at.partition): at.to_split_position() for at in held}
        return list(map(PartitionSplit.from_split, KafkaSource("in").open_planner(context).plan(known, bounded=False)))

    with pytest.raises(ConfigurationError, match=r"--accept-gap in\[0\]@100-120$"):
        plan("", in0=120)
    first, second = plan("in[0]@100-130", in0=120)
    assert (first.start, first.gaps, second.start, second.gaps) == (120, ((100, 120),), 100, ())
    held[0] = first.at(Position(200))
    [first, _] = plan("in[0]@100-130,in[0]@200-205", in0=205)
    assert gaps_of(first.at(first.start).to_split_position().position) == [[100, 120], [200, 205]]
    assert plan("in[0]@100-130")[0].gaps == ((100, 120),), "the option may stay where it is"


@pytest.mark.parametrize("gaps", [7, "1-2", {"1": 2}, [7], [[1]], [[1, 2, 3]], [["1", 2]], [None]])
def test_a_stored_position_whose_gaps_are_none_of_ours_is_damage_of_the_checkpoint(gaps: object) -> None:
    held = SplitPosition("in[0]", 0, [120, "id", {"gaps": gaps}])
    with pytest.raises(CheckpointCorrupted, match=r"split 'in\[0\]' lacks what a 'position' holds.*gaps"):
        PartitionPosition.from_split_position(held)
