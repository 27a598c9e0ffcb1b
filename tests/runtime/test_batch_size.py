"""The size of batches follows the speed of the user's functions, where it is the records that take the time."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import pytest

from twopc.runtime.batch_size import SECONDS, BatchSize

LEAST, MOST = 1, 1_000


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
