"""The charts of the benchmarks' page show the stored figures."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from charts import CHARTS, CHARTS_FOLDER, README, Bar, Bars, refreshed, svg

SVG = "{http://www.w3.org/2000/svg}"
STALE = "draw them again: python benchmarks/charts.py"


def test_the_page_says_the_stored_figures() -> None:
    page = README.read_text()
    assert refreshed(page) == page, STALE


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_that_of_the_stored_figures(name: str) -> None:
    assert (CHARTS_FOLDER / f"{name}.svg").read_text() == svg(CHARTS[name]()), STALE


def test_every_chart_has_its_place_on_the_page_and_there_is_no_other() -> None:
    page = README.read_text()
    assert [name for name in CHARTS if f"<!-- chart: {name} -->" not in page] == []
    assert {path.stem for path in CHARTS_FOLDER.iterdir()} == set(CHARTS)


def test_bars_are_as_long_as_their_values_to_one_scale() -> None:
    drawn = ElementTree.fromstring(svg([Bars("rates & more", [Bar("a", 1.0, "1"), Bar("twopc", 2.0, "2")])]))
    first, second = (int(bar.attrib["width"]) for bar in drawn.iter(f"{SVG}rect"))
    assert 2 * first == second


def test_all_of_a_chart_is_within_its_picture() -> None:
    bars = Bars("rates", [Bar("a", 1.0, "1"), Bar("b", 2.0, "2")])
    drawn = ElementTree.fromstring(svg([bars, bars]))
    bottoms = [int(bar.attrib["y"]) + int(bar.attrib["height"]) for bar in drawn.iter(f"{SVG}rect")]
    assert max(bottoms) <= int(drawn.attrib["height"])
