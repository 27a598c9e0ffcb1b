"""The load: what a record says of itself, and that the same numbers make the same records."""

from __future__ import annotations

from collections import defaultdict
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.errors import ConfigurationError
from twopc.verify.load import LoadPlan, LoadRecord, load_value, read_load

PLAN = LoadPlan(topic="t", records=500, keys=7, size=60, seed=3)


def test_every_key_counts_its_records_from_zero() -> None:
    sequences: dict[bytes, list[int]] = defaultdict(list)
    for record in PLAN.all():
        sequences[record.key].append(record.sequence)
    assert sum(map(len, sequences.values())) == 500
    assert len(sequences) == 7
    assert all(numbers == list(range(len(numbers))) for numbers in sequences.values())


def test_a_record_can_be_read_back_and_has_the_size_that_was_asked_for() -> None:
    for record in PLAN.all():
        assert read_load(record.value) == record
        assert len(record.value) == 60


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(48, 200))
def test_every_key_and_number_fits_into_every_size(key: int, sequence: int, size: int) -> None:
    value = load_value(b"key-%d" % key, sequence, size)
    assert len(value) == size
    assert read_load(value) == LoadRecord(b"key-%d" % key, sequence, value)


@given(st.integers(0, 59), st.integers(1, 255))
def test_a_byte_that_was_changed_is_noticed(index: int, flip: int) -> None:
    value = bytearray(load_value(b"key-1", 2, 60))
    value[index] ^= flip
    with pytest.raises(ValueError, match="or was changed"):
        read_load(bytes(value))


@pytest.mark.parametrize("value", [b"", b"key-1", b"key-1:x:%08x" % crc32(b"key-1:x")])
def test_what_is_no_record_of_a_load_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="not a record of a load"):
        read_load(value)


def test_the_same_plan_makes_the_same_records_and_another_seed_makes_others() -> None:
    again = LoadPlan(topic="t", records=500, keys=7, size=60, seed=3)
    other = LoadPlan(topic="t", records=500, keys=7, size=60, seed=4)
    assert list(PLAN.all()) == list(again.all()) != list(other.all())


@pytest.mark.parametrize("wrong", [{"records": -1}, {"keys": 0}, {"size": 47}, {"rate": 0}])
def test_a_load_that_can_not_be_made_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match=f"--{next(iter(wrong))}"):
        LoadPlan(**{"topic": "t", "records": 1, **wrong})  # type: ignore[arg-type]
