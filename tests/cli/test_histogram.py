from __future__ import annotations

import pytest

from twopc.cli.histogram import Histogram


def of(*durations: float) -> Histogram:
    histogram = Histogram()
    for duration in durations:
        histogram.add(duration)
    return histogram


def test_a_percentile_is_the_bound_of_its_bucket() -> None:
    assert of(*[3.0] * 98, 15.0, 70.0).percentile(0.5) == 5
    assert of(*[3.0] * 98, 15.0, 70.0).percentile(0.99) == 20


def test_no_percentile_exceeds_the_longest() -> None:
    assert of(12.0).percentile(0.99) == 12


def test_nothing_has_no_percentile_and_no_bars() -> None:
    assert of().percentile(0.5) is None
    assert str(of()) == ""


def test_what_is_longer_than_every_bound_is_counted_too() -> None:
    assert of(5_000.0).percentile(0.5) == 5_000


@pytest.mark.parametrize(
    ("durations", "line"),
    [((3.0, 3.0, 15.0), "≤5 █ ▄ ≤20 ms"), ((0.5,), "≤1 █ ≤1 ms"), ((5_000.0,), ">1000 █ 5000 ms")],
)
def test_the_line_shows_the_buckets_that_are_used(durations: tuple[float, ...], line: str) -> None:
    assert str(of(*durations)) == line
