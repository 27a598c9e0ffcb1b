"""Every entry becomes a row that says no more and no less than what is stored."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from twopc.inspect import StateEntry
from twopc.inspect.rows import plain, row_of
from twopc.protocol.ids import SubtaskIndex
from twopc.serde import Bytes, Json, Serde, String
from twopc.state.key_form import key_bytes
from twopc.state.layout import StateName


def entry(key: Any, raw: bytes, serde: Serde | None) -> StateEntry:
    return StateEntry(StateName.parse("count"), SubtaskIndex(3), 0, key_bytes(key), raw, serde)


def test_a_row_says_where_the_value_is() -> None:
    assert row_of(entry(b"LGA", b"7", Json())) == {
        "operator": "count",
        "state": "count",
        "subtask": 3,
        "partition": 0,
        "key": "LGA",
        "value": 7,
    }


@pytest.mark.parametrize(
    ("raw", "serde", "value"),
    [
        (b"null", Json(), {"value": None}),
        (b"7", None, {"value_base64": "Nw=="}),
        (b"7", Bytes(), {"value_base64": "Nw=="}),
        (b"7", String(), {"value": "7"}),
        (b'{"value_base64":"Nw=="}', Json(), {"value": {"value_base64": "Nw=="}}),
    ],
)
def test_a_value_that_is_decoded_can_not_be_taken_for_bytes(raw: bytes, serde: Serde | None, value: object) -> None:
    row = row_of(entry(b"k", raw, serde))
    assert {name: row[name] for name in row if name.startswith("value")} == value


def test_a_key_that_is_not_text_is_in_base64() -> None:
    row = row_of(entry(b"\xff", b"7", Json()))
    assert row["key_base64"] == "/w=="
    assert "key" not in row


@pytest.mark.parametrize(
    ("key", "shown"),
    [("1", {"key": "1"}), (1, {"key_json": 1}), (True, {"key_json": True}), ({"a": [1]}, {"key_json": {"a": [1]}})],
)
def test_a_key_of_json_can_not_be_taken_for_text(key: Any, shown: dict[str, Any]) -> None:
    row = row_of(entry(key, b"7", Json()))
    assert {name: row[name] for name in row if name.startswith("key")} == shown


def test_a_value_that_its_serde_refuses_is_given_as_bytes_with_the_reason() -> None:
    row = row_of(entry(b"k", b"{", Json()))
    assert row["value_base64"] == "ew=="
    assert "can't be decoded by Json()" in row["problem"]


def test_what_operators_keep_has_no_partition_and_no_key() -> None:
    row = row_of(StateEntry(StateName.parse("own"), SubtaskIndex(0), None, b"", b"7", Json()))
    assert (row["operator"], row["partition"], row["key"], row["value"]) == ("own", None, None, 7)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": (1, b"\x00"), 2: None}, {"a": [1, "AA=="], "2": None}),
        (float("nan"), "nan"),
        (1.5, 1.5),
        (Decimal("1.10"), "1.10"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
    ],
)
def test_whatever_a_serde_returns_can_be_said_in_json(value: Any, expected: object) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)
