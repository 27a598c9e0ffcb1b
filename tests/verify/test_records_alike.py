"""Records of two inputs that look the same, of which one may still come and the other must be there."""

from __future__ import annotations

import pytest

from tests.verify.forging import SOURCES, TARGETS, made, verdict_on
from twopc.verify import Found, Kind, Place


@pytest.mark.parametrize("key", [b"k", None])
def test_of_records_alike_of_two_inputs_the_one_that_must_be_there_is_the_one_that_is(key: bytes | None) -> None:
    later, due = made(0, 0, key, b"same"), made(1, 0, key, b"same")
    found = [Found(Place(TARGETS[0], 0), key, b"same")]
    complete = {SOURCES[0]: 0}
    assert verdict_on([later, due], found, complete=complete).held
    assert verdict_on([later, due], [], complete=complete).counts == {Kind.LOST: 1}
    assert verdict_on([later, due], found, complete={}).counts == {Kind.LOST: 1}
