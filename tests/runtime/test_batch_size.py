"""The size of batches follows the speed of the user's functions."""

from twopc.runtime.batch_size import RECORDS_FIRST, RECORDS_MAX, SECONDS_MAX, BatchSize


def quick(size: BatchSize, batches: int) -> None:
    for _ in range(batches):
        size.took(size.records, 0.0)


def test_it_starts_small_because_nothing_is_known() -> None:
    assert BatchSize().records == RECORDS_FIRST


def test_quick_full_batches_bring_it_to_its_greatest() -> None:
    size = BatchSize()
    quick(size, 20)
    assert size.records == RECORDS_MAX


def test_a_slow_batch_halves_the_next() -> None:
    size = BatchSize()
    quick(size, 20)
    size.took(RECORDS_MAX, 2 * SECONDS_MAX)
    assert size.records == RECORDS_MAX // 2


def test_a_small_slow_batch_halves_from_its_own_size() -> None:
    size = BatchSize()
    size.took(10, 2 * SECONDS_MAX)
    assert size.records == 5


def test_it_never_falls_below_one() -> None:
    size = BatchSize()
    for _ in range(20):
        size.took(1, 1.0)
    assert size.records == 1


def test_a_quick_batch_that_was_not_full_changes_nothing() -> None:
    size = BatchSize()
    size.took(3, 0.0)
    assert size.records == RECORDS_FIRST
