"""A key comes back from its form and what that leaves out, of its own type and with the order of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.state.key_form import key_bytes
from twopc.state.whole_key import left_out, whole_key

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.datetimes(timezones=st.timezones())
    | st.uuids()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
KEYS = VALUES.filter(lambda key: key is not None) | st.binary()


def shape(value: Any) -> Any:
    """Types and order, which equality leaves out; a time is the text that serdes make of it."""
    if isinstance(value, time | datetime):
        return type(value), value.isoformat()
    if isinstance(value, dict):
        return [(name, shape(each)) for name, each in value.items()]
    return type(value), [shape(each) for each in value] if isinstance(value, list | tuple) else repr(value)


@given(KEYS)
def test_a_key_comes_back_as_it_was(key: Any) -> None:
    # By its shape alone: a local time that a zone skips or has twice equals itself in no other zone.
    assert shape(whole_key(key_bytes(key), left_out(key))) == shape(key)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: int


@pytest.mark.parametrize("key", [Colour.RED, Point(1), {"at": Point(1)}, [Colour.RED]])
def test_a_key_that_would_come_back_as_another_is_refused_by_its_type(key: Any) -> None:
    with pytest.raises(TypeError, match=r"would find another one.*not (Colour|Point)$"):
        left_out(key)
