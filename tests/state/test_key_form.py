"""No two keys of one stream have the same form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.serde import Json
from twopc.state.key_form import MARK, key_bytes, key_of, need_no_mark

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
KEYS = VALUES.filter(lambda value: value is not None and Json.canonical(value) != b"null")


@pytest.mark.parametrize(
    ("one", "other"), [(1, "1"), (True, "true"), (True, 1), ({"a": 1}, '{"a":1}'), ([], "[]"), (1, b"1"), (1.0, 1)]
)
def test_keys_of_other_types_are_other_keys(one: Any, other: Any) -> None:
    assert key_bytes(one) != key_bytes(other)


@given(KEYS, KEYS)
def test_two_keys_of_json_have_one_form_only_if_they_are_one_text_of_json(one: Any, other: Any) -> None:
    same = Json.canonical(one) == Json.canonical(other)
    assert (key_bytes(one) == key_bytes(other)) is same


@given(st.binary(), KEYS.filter(lambda key: not isinstance(key, str)))
def test_no_bytes_have_the_form_of_a_value_of_json(one: bytes, other: Any) -> None:
    assert key_bytes(one) != key_bytes(other)


@given(st.binary() | st.just(MARK) | st.binary().map(MARK.__add__))
def test_bytes_come_back_from_their_form(key: bytes) -> None:
    assert key_of(key_bytes(key)) == key
    assert need_no_mark([key]) is (key_bytes(key) == key)


@given(KEYS)
def test_keys_of_json_come_back_from_their_form_text_as_its_bytes(key: Any) -> None:
    found = key_of(key_bytes(key))
    assert found == (key.encode() if isinstance(key, str) else json.loads(Json.canonical(key)))


@pytest.mark.parametrize("form", [MARK, MARK + b"{"])
def test_what_is_no_form_is_shown_as_bytes(form: bytes) -> None:
    assert key_of(form) == form


@pytest.mark.parametrize("key", [None, float("nan"), float("inf"), {"x": float("-inf")}, ["a", ("b", float("nan"))]])
def test_a_key_that_json_has_no_text_for_is_refused(key: Any) -> None:
    with pytest.raises(ValueError, match="can't be a key"):
        key_bytes(key)


def test_a_key_with_nothing_in_it_is_a_key() -> None:
    assert key_of(key_bytes({"x": None})) == {"x": None}
