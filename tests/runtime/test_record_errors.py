"""What a subtask counts of the records that go wrong, and tells of them."""

from __future__ import annotations

import pytest

from twopc.error_policy import ErrorPolicy, Skip
from twopc.errors import UserCodeError
from twopc.kafka.dead_letter import DeadLetter
from twopc.kafka.sink import KafkaSink
from twopc.operators import Turn
from twopc.protocol.record_errors import (
    COUNTS_MAX,
    OTHERS,
    RecordErrorCount,
    RecordErrorCounter,
    RecordErrorKind,
    counts_in,
    texts_of,
)
from twopc.record import Batch, ErrorStage, RecordError
from twopc.runtime.record_errors import MESSAGE_MAX, REPORTED_MAX, RecordErrors
from twopc.stand_ins import PassedTime
from twopc.testing.rows import InputRow, batch_of

POLICIES: dict[str, ErrorPolicy] = {"web": Skip(), "shop": DeadLetter("dead"), "calm": Skip()}
SINKS = {"dead-letters-dead": KafkaSink("dead")}


def error(doing: str, cause: Exception, offset: int = 0) -> RecordError:
    return RecordError(InputRow(b"v", b"k", offset_=offset), ErrorStage.TRANSFORMATION, doing, cause)


def test_records_are_counted_by_source_and_operator_and_by_what_became_of_them() -> None:
    errors = RecordErrors("job", POLICIES, SINKS)
    for _ in range(3):
        errors.refuse("web", error("map(f)", ValueError()))
    errors.refuse("shop", error("map(f)", ValueError()))
    errors.refuse("web", error("decoding the value", ValueError()))
    assert counts_in([errors.figures()]) == (
        RecordErrorCount("web", "map(f)", 3, 0),
        RecordErrorCount("shop", "map(f)", 0, 1),
        RecordErrorCount("web", "decoding the value", 1, 0),
    )


def test_what_goes_wrong_in_more_operators_than_are_told_apart_is_counted_together() -> None:
    errors = RecordErrors("job", POLICIES, SINKS)
    for number in range(COUNTS_MAX + 7):
        errors.refuse("web", error(f"writing to topic {number}", ValueError()))
    counts = counts_in([errors.figures()])
    assert (len(counts), counts[-1]) == (COUNTS_MAX + 1, RecordErrorCount("web", OTHERS, 7, 0))


def test_the_first_of_each_kind_is_told_once() -> None:
    errors = RecordErrors("job", POLICIES, SINKS)
    for offset in range(3):
        errors.refuse("web", error("map(f)", ValueError("not a number"), offset))
    errors.refuse("web", error("map(f)", LookupError("x" * 2 * MESSAGE_MAX)))
    errors.refuse("shop", error("map(f)", ValueError("again")))
    first, second, third = errors.take_new()
    assert first == RecordErrorKind(
        "web", "map(f)", "ValueError", "record in[0]@0: map(f) failed: ValueError: not a number: Skip(most=None)"
    )
    assert (second.error_type, len(second.message)) == ("LookupError", MESSAGE_MAX)
    assert third.source == "shop"
    assert errors.take_new() == ()


def test_more_kinds_than_one_report_holds_come_with_the_next() -> None:
    errors = RecordErrors("job", POLICIES, SINKS)
    for number in range(REPORTED_MAX + 3):
        errors.refuse("web", error(f"map({number})", ValueError()))
    assert [len(errors.take_new()) for _ in range(3)] == [REPORTED_MAX, 3, 0]


def test_counts_of_several_subtasks_are_summed_by_source_and_operator() -> None:
    first, second = RecordErrorCounter(), RecordErrorCounter()
    first.add("a", "f", skipped=1)
    first.add("b", "f", dead_letters=2)
    second.add("a", "f", skipped=5, dead_letters=1)
    assert counts_in([first.figures(), None, second.figures()]) == (
        RecordErrorCount("a", "f", 6, 1),
        RecordErrorCount("b", "f", 0, 2),
    )


def test_a_line_of_text_has_the_greatest_counts_and_the_sum_of_the_others() -> None:
    counts = [RecordErrorCount("a", name, number, number == 5) for number, name in enumerate("defgh", 1)]
    assert texts_of(counts[:1]) == ("1 skipped of 'a' in d",)
    assert texts_of(counts) == (
        "5 skipped and 1 dead letter of 'a' in h",
        "4 skipped of 'a' in g",
        "3 skipped of 'a' in f",
        "3 skipped in 2 more",
    )


def rows(begin: int, count: int) -> list[InputRow]:
    return [InputRow(b"v", offset_=offset) for offset in range(begin, begin + count)]


def refused(most: float, batches: list[list[InputRow]], wrong: list[int]) -> list[int]:
    """Return the offsets, of those that go wrong, at which the job would end."""
    errors = RecordErrors("job", {"web": Skip(most=most)}, {})
    ends = []
    for each in batches:
        errors.read(Turn.of("web", batch_of(each)))
        for offset in (offset for offset in wrong if each[0].offset_ <= offset <= each[-1].offset_):
            try:
                errors.refuse("web", error("map(f)", ValueError(), offset))
            except UserCodeError:
                ends.append(offset)
    return ends


@pytest.mark.parametrize("size", [1_000, 7_000, 30_000])
def test_the_limit_is_of_the_last_ten_thousand_records_wherever_batches_end(size: int) -> None:
    batches = [rows(begin, min(size, 30_000 - begin)) for begin in range(0, 30_000, size)]
    assert refused(0.0002, batches, [0, 1, 9_999]) == [9_999]
    assert refused(0.0002, batches, [0, 1, 10_000]) == []
    assert refused(0.0002, batches, [0, 1, 10_001, 10_002, 20_000]) == [20_000]


@pytest.mark.parametrize("allowed", [1, 3, 7, 29, 57])
def test_the_limit_is_exact_as_it_is_written_in_decimals(allowed: int) -> None:
    policy = Skip(most=float(f"0.{allowed:04}"))
    assert policy.allowed == allowed


def test_a_record_that_fails_several_times_counts_once() -> None:
    assert refused(0.0001, [rows(0, 10)], [5, 5, 5]) == []
    assert refused(0.0001, [rows(0, 10)], [5, 3, 5]) == [3, 5]


def test_what_could_not_be_decoded_counts_in_its_place() -> None:
    errors = RecordErrors("job", {"web": Skip(most=0)}, {})
    bad = RecordError(InputRow(b"v", offset_=1), ErrorStage.VALUE_CONVERTER, "decoding", ValueError())
    errors.read(Turn.of("web", Batch([*rows(0, 1), *rows(2, 1)], [1, 2], errors=[(1, bad)])))
    with pytest.raises(UserCodeError, match="1 of the last 10,000 records that this subtask read of 'web' went wrong"):
        errors.refuse("web", bad)


def test_each_thing_that_goes_wrong_as_time_passes_counts_by_itself() -> None:
    errors = RecordErrors("job", {"web": Skip(most=0.0001)}, {})
    errors.read(Turn.of("web", batch_of(rows(0, 5))))
    lost = RecordError(PassedTime(0), ErrorStage.TRANSFORMATION, "on_timer", ValueError())
    errors.refuse("web", lost)
    with pytest.raises(UserCodeError, match="2 of the last"):
        errors.refuse("web", lost)
