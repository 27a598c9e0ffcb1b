"""A real output is judged from its end: what stood there before the checkpoint is left out, what is wrong is named."""

from __future__ import annotations

import pytest

from twopc.drill.output_comparison import TopicVerdict, check_of, since_checkpoint
from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.verify.findings import Kind
from twopc.verify.history import Expected, Found
from twopc.verify.judge import verdict_on

IN = (TopicPartition("in", 0), TopicPartition("in", 1))
OUT = TopicPartition("out", 0)


def expected(*values: str, key: str | None = "a", partition: int = 0, first: int = 0) -> list[Expected]:
    """What the input from offset `first` on makes, one record each."""
    name = None if key is None else key.encode()
    return [Expected(Place(IN[partition], first + index), name, value.encode()) for index, value in enumerate(values)]


def found(*values: str, key: str | None = "a") -> list[Found]:
    name = None if key is None else key.encode()
    return [Found(Place(OUT, index), name, value.encode()) for index, value in enumerate(values)]


def check(expecting: list[Expected], seen: list[Found], required: int = 100) -> Check:
    ends = dict.fromkeys(IN, Position(required))
    return check_of(
        "output",
        [TopicVerdict(verdict_on("out", expecting, since_checkpoint(expecting, seen, ends).found, complete=ends))],
        "held",
    )


def test_what_stood_there_before_the_checkpoint_is_no_finding() -> None:
    assert check(expected("4", "5"), found("1", "2", "3", "4", "5")).verdict is CheckVerdict.HELD


def test_output_of_input_that_the_job_need_not_have_read_yet_may_be_missing() -> None:
    assert check(expected("4", "5", "6"), found("1", "4"), required=1).verdict is CheckVerdict.HELD


def test_output_of_input_that_the_job_has_committed_may_not() -> None:
    assert "1 lost" in check(expected("4", "5", "6"), found("1", "4"), required=2).text


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        pytest.param(("1", "4", "6", "7"), "1 lost", id="lost"),
        pytest.param(("1", "4", "5", "5", "6", "7"), "1 duplicated", id="duplicated"),
        pytest.param(("1", "4", "6", "5", "7"), "1 reordered", id="reordered"),
        pytest.param(("1", "4", "5", "9", "7"), "1 disagrees", id="another value"),
    ],
)
def test_what_is_wrong_since_the_checkpoint_is_named(seen: tuple[str, ...], what: str) -> None:
    judgement = check(expected("4", "5", "6", "7"), found(*seen))
    assert judgement.verdict is CheckVerdict.BROKEN
    assert what in judgement.text


def test_keys_that_the_input_since_the_checkpoint_does_not_have_are_from_before() -> None:
    assert check(expected("4"), [*found("1", key="b"), *found("4")]).verdict is CheckVerdict.HELD


@pytest.mark.parametrize("key", [None, "a"], ids=["no key", "a key of two input partitions"])
def test_records_without_an_order_of_their_own_may_come_in_any(key: str | None) -> None:
    expecting = [*expected("4", "5", key=key), *expected("x", "y", key=key, partition=1)]
    assert check(expecting, found("1", "x", "4", "5", "y", key=key)).verdict is CheckVerdict.HELD


@pytest.mark.parametrize("key", [None, "a"], ids=["no key", "a key of two input partitions"])
def test_of_those_too_each_must_be_there(key: str | None) -> None:
    expecting = [*expected("4", "5", key=key), *expected("x", "y", key=key, partition=1)]
    assert "1 lost" in check(expecting, found("1", "x", "5", "y", key=key)).text


def test_what_is_wrong_in_one_of_several_outputs_breaks_and_what_a_sink_does_not_rule_out_is_told() -> None:
    doubled = TopicVerdict(verdict_on("one", expected("4"), found("4", "4")), frozenset({Kind.DUPLICATED}))
    right = TopicVerdict(verdict_on("other", expected("5"), found("5")))
    lost = TopicVerdict(verdict_on("third", expected("6"), []))
    assert (
        check_of("output", [doubled, right], "held").text
        == "held; besides 1 duplicated, which the sink does not rule out"
    )
    broken = check_of("output", [doubled, lost], "held")
    assert (broken.verdict, len(broken.findings)) == (CheckVerdict.BROKEN, 1)
