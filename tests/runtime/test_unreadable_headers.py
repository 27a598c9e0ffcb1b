"""Records with headers that the client can't hand over: their own fault, where the job goes on behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from twopc import DeadLetter, Fail, KafkaSink, Skip
from twopc.connect import HeaderSerde
from twopc.error_policy import ErrorPolicy
from twopc.errors import UserCodeError
from twopc.kafka.input.decoding import decoded
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.operators import Turn
from twopc.record import Batch, ErrorStage, Headers, RecordError
from twopc.runtime.record_errors import RecordErrors
from twopc.serde import BYTES
from twopc.testing.rows import InputRow, keys_in, values_in

GOOD: Headers = [("trace", b"7")]


@dataclass(frozen=True)
class Torn(InputRow):
    """As confluent-kafka's: it fails within a failure, and would crash if it was asked again."""

    asked: list[str] = field(default_factory=list)

    def headers(self) -> Headers | None:
        assert not self.asked, "asked once more, the client crashes"
        self.asked.append("headers")
        raise SystemError("a result with an exception set") from UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid")


def rows(*torn: int, count: int = 6) -> list[InputRow]:
    return [(Torn if n in torn else InputRow)(n, offset_=n, headers_=GOOD) for n in range(count)]


def batch(every: list[InputRow], *bad_values: int) -> Batch:
    """A batch of these rows, of which some could not be decoded."""
    good = [row for row in every if row.offset_ not in bad_values]
    errors = [
        (sum(row.offset_ < bad for row in good), RecordError(every[bad], ErrorStage.VALUE_CONVERTER, "", ValueError()))
        for bad in bad_values
    ]
    return Batch(good, [row.value_ for row in good], errors=errors)


def readable(policy: ErrorPolicy, given: Batch) -> Batch:
    [(_, read)] = RecordErrors("job", {"in": policy}, {}).read(Turn.of("in", given)).parts
    return read


def test_those_that_can_be_read_go_on_with_their_headers() -> None:
    left = readable(Skip(), batch(rows(1, 4)))
    assert (left.values, left.headers) == ([0, 2, 3, 5], [GOOD] * 4)


def test_the_others_are_errors_in_their_places_among_what_was_not_decoded() -> None:
    left = readable(Skip(), batch(rows(1, 3, 4), 0, 2, 5))
    assert left.values == []
    assert [(before, error.row.offset()) for before, error in left.errors] == [(0, n) for n in range(6)]
    left = readable(Skip(), batch(rows(2), 1, 3))
    assert [(before, error.row.offset(), error.stage) for before, error in left.errors] == [
        (1, 1, ErrorStage.VALUE_CONVERTER),
        (1, 2, ErrorStage.HEADER_CONVERTER),
        (1, 3, ErrorStage.VALUE_CONVERTER),
    ]


def test_a_job_that_ends_with_them_asks_nobody() -> None:
    every = rows(1)
    assert len(readable(Fail(), batch(every))) == 6
    assert isinstance(every[1], Torn)
    assert every[1].asked == []


def test_one_as_a_dead_letter_is_asked_no_more_and_says_what_was_wrong() -> None:
    policy = DeadLetter("dead")
    [(_, error)] = readable(policy, batch(rows(0, count=1))).errors
    letter = policy.dead_letter("job", error, KafkaSink("dead"))
    headers = dict(letter.headers[0] or ())
    assert letter.values == [0]
    assert headers["__connect.errors.stage"] == b"HEADER_CONVERTER"
    assert b"utf-8" in (headers["__connect.errors.exception.message"] or b"")
    assert "names must be UTF-8" in str(error.named())


class Unit(HeaderSerde):
    """A number, whose unit is in a header."""

    def deserialize_with(self, data: bytes | None, headers: Headers | None) -> Any:
        return int(data or b""), dict(headers or ())["trace"]

    def serialize_with(self, value: Any, headers: Headers | None) -> tuple[bytes | None, Headers | None]:
        raise NotImplementedError


def test_a_serde_that_is_in_the_headers_is_not_asked_about_those_and_they_are_errors_in_their_places() -> None:
    values = {2: b"no number", 5: b"none either"}
    every = [(Torn if n in (1, 3) else InputRow)(values.get(n, b"%d" % n), offset_=n, headers_=GOOD) for n in range(7)]
    with TopicSerdes(BYTES, Unit(), ["in"]) as serdes:
        made = decoded(every, serdes, keys_in, values_in)
    assert made.values == [(0, b"7"), (4, b"7"), (6, b"7")]
    assert [(before, error.row.offset(), error.stage) for before, error in made.errors] == [
        (1, 1, ErrorStage.HEADER_CONVERTER),
        (1, 2, ErrorStage.VALUE_CONVERTER),
        (1, 3, ErrorStage.HEADER_CONVERTER),
        (2, 5, ErrorStage.VALUE_CONVERTER),
    ]
    assert readable(Skip(), made).values == made.values


def test_where_nobody_goes_on_behind_them_such_a_serde_ends_the_job_by_the_record() -> None:
    with TopicSerdes(BYTES, Unit(), ["in"]) as serdes:
        [(_, error)] = decoded([Torn(b"1", offset_=7)], serdes, keys_in, values_in).errors
    with pytest.raises(UserCodeError, match=r"in\[0\]@7: reading the headers"):
        RecordErrors("job", {"in": Fail()}, {}).refuse("in", error)
