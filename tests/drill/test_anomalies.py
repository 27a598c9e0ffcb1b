"""Forged histories: what can be wrong with an output is named by the judge of drills, whichever drill asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.verify.forging import SOURCES, TARGETS, history_of, made
from twopc import Job, KafkaSink, KafkaSource
from twopc.config import RunSettings
from twopc.drill.fault_checks import judge_output, judge_state
from twopc.drill.job import DrillJob
from twopc.drill.output_comparison import TopicVerdict, check_of, since_checkpoint
from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.sink import DeliveryGuarantee
from twopc.kafka.topic_partition import Position
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.state.layout import StateName
from twopc.state.whole_states import KeyState
from twopc.verify import Expected, Found, Outcome, Place
from twopc.verify.judge import verdict_on

RECORDS, IN_A_TRANSACTION, CHECKPOINT = 12, 3, 3
MADE = [made(0, offset, b"a", b"%d" % offset) for offset in range(RECORDS)]
RIGHT = list(history_of(MADE, [IN_A_TRANSACTION], [0]).found)

Spoil = Callable[[list[Found]], list[Found]]
Judged = Callable[[Sequence[Found]], Check]


def whole(found: Sequence[Found]) -> Check:
    """As a fault drill judges its output, and a restore drill that of its replay."""
    return check_of("output", [TopicVerdict(verdict_on("out", MADE, found))], "held")


def since(found: Sequence[Found]) -> Check:
    """As a restore drill judges the real output: what stood there before the checkpoint is none of its business."""
    due: list[Expected] = MADE[CHECKPOINT:]
    ends = {SOURCES[0]: Position(RECORDS)}
    return check_of(
        "output",
        [TopicVerdict(verdict_on("out", due, since_checkpoint(due, found, ends).found, complete=ends))],
        "held",
    )


def lose_a_transaction(found: list[Found]) -> list[Found]:
    return found[:6] + found[9:]


def lose_one_of_a_transaction(found: list[Found]) -> list[Found]:
    return found[:7] + found[8:]


def write_a_transaction_again(found: list[Found]) -> list[Found]:
    again = found[6:9]
    return [*found[:9], *_later(again, number=9), *found[9:]]


def swap_two(found: list[Found]) -> list[Found]:
    return [*found[:7], found[8], found[7], *found[9:]]


def show_an_aborted_one(found: list[Found]) -> list[Found]:
    [seen] = _later(found[6:7], number=9)
    assert seen.transaction is not None
    return [*found[:9], replace(seen, transaction=replace(seen.transaction, outcome=Outcome.ABORTED)), *found[9:]]


def begin_counting_again(found: list[Found]) -> list[Found]:
    return [*found[:7], replace(found[7], value=b"another"), *found[8:]]


def _later(found: Sequence[Found], number: int) -> list[Found]:
    """The same records, written again behind all others in a transaction of their own."""
    return [
        replace(each, place=Place(TARGETS[1], 100 + index), transaction=replace(each.transaction, number=number))
        for index, each in enumerate(found)
        if each.transaction is not None
    ]


@pytest.mark.parametrize("judge", [whole, since])
@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lose_a_transaction, "3 lost"),
        (lose_one_of_a_transaction, "1 torn"),
        (write_a_transaction_again, "3 duplicated"),
        (swap_two, "1 reordered"),
        (show_an_aborted_one, "1 aborted"),
        (begin_counting_again, "1 disagrees"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_else(judge: Judged, spoil: Spoil, named: str) -> None:
    assert judge(RIGHT).verdict is CheckVerdict.HELD
    check = judge(spoil(RIGHT))
    assert (check.verdict, check.text) == (CheckVerdict.BROKEN, f"of the output: {named}")


@pytest.mark.parametrize(
    ("spoil", "guarantee", "verdict"),
    [
        (write_a_transaction_again, DeliveryGuarantee.EXACTLY_ONCE, CheckVerdict.BROKEN),
        (write_a_transaction_again, DeliveryGuarantee.AT_LEAST_ONCE, CheckVerdict.HELD),
        (lose_a_transaction, DeliveryGuarantee.AT_LEAST_ONCE, CheckVerdict.BROKEN),
        (lose_a_transaction, DeliveryGuarantee.NONE, CheckVerdict.NOT_JUDGED),
    ],
)
def test_a_sink_is_held_to_what_it_promises(spoil: Spoil, guarantee: DeliveryGuarantee, verdict: CheckVerdict) -> None:
    job = Job("job").source(KafkaSource("in")).sink(KafkaSink("out", delivery_guarantee=guarantee)).definition()
    drilled = DrillJob.of(job, RunSettings(bootstrap_servers="s:1"), {})
    check = judge_output({"out": verdict_on("out", MADE, spoil(RIGHT))}, drilled)
    assert check.verdict is verdict
    assert "3 duplicated" in check.text or "3 lost" in check.text


def test_an_aborted_record_is_named_wherever_it_stands_before_the_checkpoint_too() -> None:
    [seen] = _later(RIGHT[:1], number=9)
    assert seen.transaction is not None
    aborted = replace(seen, transaction=replace(seen.transaction, outcome=Outcome.ABORTED))
    assert since([aborted, *RIGHT]).text == "of the output: 1 aborted"


def test_a_finding_says_whose_transaction_it_is() -> None:
    [finding] = whole(show_an_aborted_one(RIGHT)).findings
    assert "aborted transaction 9 of producer 0/0" in finding


def last_checkpoint(position: int) -> CheckpointMetadata:
    held = (PartitionPosition(SOURCES[0], "id", Position(position)).to_split_position(),)
    snapshot = SubtaskSnapshot.of(SubtaskIndex(0), held, StateHandle("chk-1/subtask-0", "", 0, 0), ())
    kind = CheckpointKind.PERIODIC
    return CheckpointMetadata("job", CheckpointId(1), AttemptId(1), 1, kind, 0, 0, (snapshot,))


@pytest.mark.parametrize(
    ("position", "state", "named"),
    [
        pytest.param(
            12,
            {b"a": b"11"},
            "state: count of partition 0, key b'a', holds b'11', and the input makes it b'12'",
            id="behind",
        ),
        pytest.param(12, {}, "state: count of partition 0, key b'a', holds None", id="missing"),
        pytest.param(
            12, {b"a": b"12", b"b": b"1"}, "state: count of partition 0, key b'b', holds b'1'", id="of nobody"
        ),
        pytest.param(11, {b"a": b"12"}, "position: in[0]@11, but the input ends at 12", id="position"),
    ],
)
def test_state_that_disagrees_with_the_output_is_named(position: int, state: dict[bytes, bytes], named: str) -> None:
    ends = {SOURCES[0]: Position(RECORDS)}
    count = StateName("count", "count")
    right, found = {KeyState(count, 0, b"a"): b"12"}, {KeyState(count, 0, key): raw for key, raw in state.items()}
    assert judge_state(last_checkpoint(12), ends, right, right).verdict is CheckVerdict.HELD
    check = judge_state(last_checkpoint(position), ends, right, found)
    assert check.verdict is CheckVerdict.BROKEN
    assert [finding.startswith(named) for finding in check.findings] == [True]
