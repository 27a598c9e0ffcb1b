"""The size of batches follows the speed of the user's functions, where it is the records that take the time."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import pytest

from twopc.runtime.batch_size import MOST, MOST_PACKED, SECONDS, BatchSize

LEAST = 1


def played(seconds: Callable[[int], float], batches: int = 60, size: BatchSize | None = None) -> list[int]:
    """Return the sizes of so many full batches that take as long as `seconds` says."""
    size = size or BatchSize(LEAST, MOST)
    sizes = []
    for _ in range(batches):
        sizes.append(size.records)
        size.took(size.records, seconds(size.records))
    return sizes


def fast(records: int) -> float:
    return 0.0002 + 3e-6 * records


def slow(records: int) -> float:
    return 0.5 * records


def test_the_first_batch_is_the_smallest_because_nothing_is_known() -> None:
    assert BatchSize(LEAST, MOST).records == LEAST


def test_fast_functions_soon_get_the_greatest_batches_and_keep_them() -> None:
    sizes = played(fast)
    assert sizes.index(MOST) <= 10
    assert set(sizes[10:]) == {MOST}


def test_records_that_take_long_come_one_or_two_at_a_time() -> None:
    assert max(played(slow)) == 2


def test_a_function_that_turns_slow_gets_small_batches_at_once() -> None:
    size = BatchSize(LEAST, MOST)
    played(fast, size=size)
    assert max(played(slow, size=size)[3:]) <= 2


def test_what_a_call_costs_whatever_its_size_keeps_batches_great() -> None:
    assert min(played(lambda records: 0.06 + 1e-6 * records)[12:]) > MOST / 2


def test_a_function_that_works_on_many_at_once_gets_many() -> None:
    def pool(records: int) -> float:
        return 0.06 * ceil(records / 64)

    sizes = played(pool, 200)
    assert sum(sizes) / sum(map(pool, sizes)) > 500, "16 in a second, one at a time"


def test_the_records_of_a_batch_add_no_more_than_their_share_to_its_time() -> None:
    sizes = played(lambda records: 0.001 * records)
    settled = sizes[10:]
    assert 0.5 * SECONDS < 0.001 * sum(settled) / len(settled) < 1.5 * SECONDS


@pytest.mark.parametrize("seconds", [fast, slow, lambda records: 0.0])
def test_it_keeps_within_its_bounds(seconds: Callable[[int], float]) -> None:
    sizes = played(seconds, size=BatchSize(20, 50))
    assert (min(sizes), max(sizes)) == (20, 50) or set(sizes) <= set(range(20, 51))


def test_a_batch_that_was_not_full_lets_none_grow() -> None:
    size = BatchSize(LEAST, MOST)
    played(fast, 4, size)
    before = size.records
    size.took(before - 1, 0.0)
    assert size.records == before


def test_one_long_pause_is_forgotten() -> None:
    size = BatchSize(LEAST, MOST)
    played(fast, size=size)
    size.took(MOST, 10.0)
    assert played(fast, size=size)[-1] == MOST


def test_records_that_stay_packed_come_in_greater_batches_until_they_become_objects() -> None:
    size = BatchSize.within(LEAST, None)
    for _ in range(20):
        size.took(size.records, fast(size.records), 100 * size.records)
    assert size.records == MOST_PACKED
    size.took(size.records, fast(size.records))
    assert size.records == MOST


@pytest.mark.parametrize(("value_bytes", "most"), [(0, MOST_PACKED), (1_000, 4_000), (100_000, MOST)])
def test_of_packed_records_that_are_large_there_are_fewer_at_once(value_bytes: int, most: int) -> None:
    size = BatchSize.within(LEAST, None)
    for _ in range(20):
        size.took(size.records, 0.0, value_bytes * size.records)
    assert size.records == most


def test_a_maximum_that_somebody_gave_is_one_for_packed_records_too() -> None:
    size = BatchSize.within(LEAST, 500)
    for _ in range(20):
        size.took(size.records, fast(size.records), 100 * size.records)
    assert size.records == 500


def test_a_minimum_above_the_usual_maximum_is_kept() -> None:
    assert BatchSize.within(5_000, None).records == 5_000
