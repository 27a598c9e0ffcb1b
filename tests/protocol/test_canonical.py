"""The text that digests are taken of is the same, whoever writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from twopc.protocol.canonical import canonical
from twopc.protocol.checkpoints import CheckpointKind

TEXT = st.text(st.characters(codec=None))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def by_the_book(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


@given(VALUES)
@example({"b": 1, "a": [2, {"d": None, "c": True}]})
@example("\ud800")
@example(2**63)
@example(-(2**64) - 1)
@example({"\x7f": '\x00\x1f"\\/', "é": "\u2028"})
@example({1: 2, 3: None})
def test_every_value_has_the_text_that_json_gives_it(value: Any) -> None:
    assert canonical(value) == by_the_book(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_is_not_whole_is_read_as_what_was_written(value: float) -> None:
    assert json.loads(canonical([value])) == [value]


def test_a_member_of_an_enumeration_is_written_as_its_value() -> None:
    assert canonical({"kind": CheckpointKind.FINAL}) == b'{"kind":"final"}'


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        canonical({"a": object()})
