"""The charts of the benchmarks' page show the stored figures."""

from __future__ import annotations

from charts import CHARTS, README, bars, refreshed


def test_the_charts_are_those_of_the_stored_figures() -> None:
    page = README.read_text()
    assert refreshed(page) == page, "draw them again: python benchmarks/charts.py"


def test_every_chart_has_its_place_on_the_page() -> None:
    page = README.read_text()
    assert [name for name in CHARTS if f"<!-- chart: {name} -->" not in page] == []


def test_the_longest_bar_is_that_of_the_greatest_value() -> None:
    _, first, second = bars("", [("a", 1.0, "1"), ("b", 2.0, "2")]).splitlines()
    assert 2 * first.count("█") == second.count("█")
