"""What a subtask counts of the records that go wrong, and tells of them."""

from __future__ import annotations

from twopc.error_policy import ErrorPolicy, Skip
from twopc.kafka.dead_letter import DeadLetter
from twopc.protocol.record_errors import RecordErrorCount, RecordErrorKind, summed
from twopc.record import RecordError, Stage
from twopc.runtime.record_errors import MESSAGE_MAX, REPORTED_MAX, RecordErrors
from twopc.testing.rows import InputRow

POLICIES: dict[str, ErrorPolicy] = {"web": Skip(), "shop": DeadLetter("dead"), "calm": Skip()}


def error(doing: str, cause: Exception, offset: int = 0) -> RecordError:
    return RecordError(InputRow(b"v", b"k", offset_=offset), Stage.TRANSFORMATION, doing, cause)


def test_records_are_counted_by_source_and_by_what_became_of_them() -> None:
    errors = RecordErrors("job", POLICIES)
    for _ in range(3):
        errors.refuse("web", error("map(f)", ValueError()))
    errors.refuse("shop", error("map(f)", ValueError()))
    assert errors.counts() == (RecordErrorCount("web", 3, 0), RecordErrorCount("shop", 0, 1))


def test_the_first_of_each_kind_is_told_once() -> None:
    errors = RecordErrors("job", POLICIES)
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
    errors = RecordErrors("job", POLICIES)
    for number in range(REPORTED_MAX + 3):
        errors.refuse("web", error(f"map({number})", ValueError()))
    assert [len(errors.take_new()) for _ in range(3)] == [REPORTED_MAX, 3, 0]


def test_counts_of_several_subtasks_are_summed_by_source() -> None:
    counts = [RecordErrorCount("a", 1, 0), RecordErrorCount("b", 0, 2), RecordErrorCount("a", 5, 1)]
    assert summed(counts) == (RecordErrorCount("a", 6, 1), RecordErrorCount("b", 0, 2))
    assert [str(count) for count in summed(counts)] == ["6 skipped and 1 dead letters of 'a'", "2 dead letters of 'b'"]
