"""A dead letter is read as it was written; which of them may be replayed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc import ConfigurationError, DeadLetter, KafkaSink
from twopc.kafka.found_letter import REPLAYED, FoundLetter, letter_of, mark_of
from twopc.kafka.letter_choice import LetterChoice
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.record import ErrorStage, RecordError
from twopc.testing.rows import InputRow

BYTES = st.none() | st.binary(max_size=20)


def place(offset: int) -> Place:
    return Place(TopicPartition("dead", 0), Position(offset))


def found(row: InputRow, offset: int = 0, sink: KafkaSink | None = None, message: str = "no") -> FoundLetter:
    """Return the letter of a record as it is found in topic `dead`."""
    error = RecordError(row, ErrorStage.TRANSFORMATION, "map(f)", ValueError(message))
    batch = DeadLetter("dead").dead_letter("job", error, sink or KafkaSink("out"))
    stamp, headers = batch.timestamps[0], batch.headers[0]
    written = InputRow(batch.values[0], batch.keys[0], 0, offset, stamp, headers, "dead")
    letter = letter_of(written)
    assert letter is not None
    return letter


@given(key=BYTES, value=BYTES, header=BYTES, stamp=st.integers(1, 10**12))
def test_all_of_the_record_comes_back_with_what_went_wrong(
    key: bytes | None, value: bytes | None, header: bytes | None, stamp: int
) -> None:
    letter = found(InputRow(value, key, 3, 42, stamp, [("trace", header)]), offset=7)
    assert (letter.key, letter.value, letter.headers, letter.timestamp) == (key, value, (("trace", header),), stamp)
    assert (letter.place, letter.origin) == (place(7), Place(TopicPartition("in", 3), Position(42)))
    told = [letter.text(name) for name in ("class.name", "exception.class.name", "exception.message", "connector.name")]
    assert told == ["map(f)", "ValueError", "no", "job"]
    assert list(LetterChoice(frozenset(), frozenset()).of([letter])) == [letter]


@given(st.text(min_size=1), st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_place_is_read_as_it_is_written(topic: str, partition: int, offset: int) -> None:
    written = Place(TopicPartition(topic, partition), Position(offset))
    assert Place.parse(str(written)) == written


@pytest.mark.parametrize(
    "text", ["", "dead", "dead[0]", "dead@3", "dead[x]@3", "dead[0]@", "[0]@3", "dead[0]@-3", "dead0]@3"]
)
def test_what_is_no_place_is_none(text: str) -> None:
    assert Place.parse(text) is None


def test_a_mark_says_which_letter_was_replayed_and_is_none_itself() -> None:
    mark = InputRow(None, headers_=[(REPLAYED, b"dead[0]@7")], topic_="dead")
    assert (mark_of(mark), letter_of(mark)) == (place(7), None)
    replayed_record = InputRow(b"v", b"k", headers_=[(REPLAYED, b"dead[0]@7")])
    assert (mark_of(replayed_record), letter_of(replayed_record)) == (None, None)


REFUSED: dict[str, tuple[FoundLetter, str]] = {
    "replayed before": (found(InputRow(b"v"), offset=1), "was replayed before: --again"),
    "of an own topic": (found(InputRow(b"v", topic_="job-by-id-repartition"), offset=2), "of the job's own"),
    "cut": (
        found(InputRow(b"v" * 9_000), offset=3, sink=KafkaSink("out", properties={"message.max.bytes": 5_000})),
        "has not all of its record",
    ),
    "without an origin": (FoundLetter(place(4), b"k", b"v", (), None, {"topic": "in"}), "does not say where"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_letter_that_can_not_be_replayed_is_left_out_or_refused_where_it_is_named(why: str) -> None:
    letter, reason = REFUSED[why]
    choice = LetterChoice(frozenset(), frozenset([place(1)]))
    assert list(choice.of([letter])) == []
    assert [reason in text for text in choice.left_out] == [True]
    with pytest.raises(ConfigurationError, match=reason):
        list(LetterChoice(frozenset([letter.place]), frozenset([place(1)])).of([letter]))


def test_a_letter_of_which_the_stack_trace_was_cut_has_all_of_its_record() -> None:
    letter = found(InputRow(b"v"), sink=KafkaSink("out", properties={"message.max.bytes": 2_000}), message="m" * 3_000)
    assert "exception.message of 3000 bytes" in letter.shortened
    assert list(LetterChoice(frozenset(), frozenset()).of([letter])) == [letter]


def test_again_replays_what_was_replayed_and_a_kind_leaves_the_others() -> None:
    one, other = found(InputRow(b"1"), offset=1), found(InputRow(b"2"), offset=2)
    again = LetterChoice(frozenset(), frozenset([one.place]), again=True, is_wanted=lambda each: each is one)
    assert list(again.of([one, other])) == [one]
    assert not again.left_out


def test_a_letter_that_is_named_and_not_there_is_refused() -> None:
    letter: Any = found(InputRow(b"1"), offset=1)
    with pytest.raises(ConfigurationError, match=r"no dead letter at dead\[0\]@9"):
        list(LetterChoice(frozenset([place(9), place(1)]), frozenset()).of([letter]))
