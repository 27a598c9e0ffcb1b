"""The records that lines of input say, and what is said of a line that says none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.cli.topic_lines import JsonLines, NewRecord, TextLines, header_of, records
from twopc.errors import ConfigurationError
from twopc.kafka.record_rows import row_of
from twopc.testing.rows import InputRow

NOTHING = NewRecord(None)
names = st.text().filter(lambda text: "\ud800" not in text)
data = st.none() | st.binary()
stamps = st.none() | st.integers(1, 2**63 - 1)


def one(line: str | bytes, form: TextLines | JsonLines, extra: NewRecord = NOTHING) -> NewRecord:
    (record,) = records([line if isinstance(line, bytes) else line.encode()], form, extra)
    return record


@given(data, data, st.lists(st.tuples(names, data)), stamps)
def test_a_record_that_was_printed_as_json_is_read_as_it_was(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int | None
) -> None:
    row = InputRow(value, key, timestamp_=timestamp, headers_=headers)
    assert one(json.dumps(row_of(row)), JsonLines()) == NewRecord(value, key, tuple(headers), timestamp)


def test_a_line_of_text_is_a_value_without_its_end() -> None:
    assert one(b" a:b \r\n", TextLines()) == NewRecord(b" a:b ")
    assert one(b"\n", TextLines()) == NewRecord(b"")


def test_the_first_separator_ends_the_key() -> None:
    assert one("a::b::c", TextLines(b"::")) == NewRecord(b"b::c", b"a")


def test_a_value_that_is_no_text_is_written_as_json() -> None:
    assert one('{"value": {"n": [1, 2.5, "ä"]}}', JsonLines()).value == b'{"n":[1,2.5,"\\u00e4"]}'
    assert one('{"value": "{}", "key": 12345678901234567890}', JsonLines()) == NewRecord(b"{}", b"12345678901234567890")


def test_each_record_gets_the_headers_of_all_and_the_key_where_it_has_none() -> None:
    extra = NewRecord(None, b"k", (header_of("by=a=b"),))
    lines = ['{"value": "1", "key": "own", "headers": {"a": "b"}}', "", '{"value": "2"}']
    assert list(records(map(str.encode, lines), JsonLines(), extra)) == [
        NewRecord(b"1", b"own", (("a", b"b"), ("by", b"a=b"))),
        NewRecord(b"2", b"k", (("by", b"a=b"),)),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1 can't be written"),
        ("[1]", "it is no object"),
        ('{"key": "a"}', "it has no 'value'"),
        ('{"value": 1, "vlaue": 2}', "it has 'vlaue': take headers, key"),
        ('{"value": 1, "value_base64": "AA=="}', "both 'value' and 'value_base64'"),
        ('{"value_base64": "?"}', "line 1"),
        ('{"value_base64": 5}', "its value_base64 is no text"),
        ('{"value": NaN}', "not JSON compliant"),
        ('{"value": 1, "headers": ["a"]}', "its headers are neither"),
        ('{"value": 1, "timestamp": 1.5}', "its timestamp must be Unix milliseconds"),
        ('{"value": 1, "timestamp": 0}', "not 0"),
        ('{"value": 1, "timestamp": true}', "not True"),
        (b'{"value": "\xff"}', "line 1"),
    ],
)
def test_a_line_that_says_no_record_is_refused_by_its_number(line: str | bytes, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said.replace("(", r"\(")):
        one(line, JsonLines())
