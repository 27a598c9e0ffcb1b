from __future__ import annotations

from xml.etree import ElementTree

import pytest

from twopc.report.chart import LEFT, RIGHT, WIDTH, Line, histogram, line_chart, round_steps, short


def test_a_line_goes_up_where_the_values_do() -> None:
    root = ElementTree.fromstring(line_chart("rate", [Line("a", [(0, 0), (1, 10)])], "s", "records"))
    polyline = root.find(".//polyline")
    assert polyline is not None
    first, last = (tuple(map(float, point.split(","))) for point in polyline.attrib["points"].split())
    assert last[0] > first[0]
    assert last[1] < first[1]


def test_a_histogram_counts_every_value() -> None:
    root = ElementTree.fromstring(histogram("pause", [1, 1, 2, 9], "ms", buckets=4))
    titles = [bar.findtext("title") or "" for bar in root.findall(".//rect")]
    assert sum(int(title.rpartition(": ")[2]) for title in titles) == 4


@pytest.mark.parametrize("chart", [line_chart("none", [], "s", "n"), histogram("none", [], "ms")])
def test_a_chart_of_nothing_says_so(chart: str) -> None:
    assert "nothing was measured" in chart


def test_names_can_not_inject_markup() -> None:
    ElementTree.fromstring(line_chart("<script>", [Line('"&<', [(0, 1)])], "<x>", "y"))


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (950.0, "950"), (1_200_000.0, "1.2M"), (2_500.0, "2.5k")])
def test_axis_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize(
    ("low", "high", "steps"),
    [(0, 77.8, [0, 20, 40, 60]), (3.8, 12, [4, 6, 8, 10, 12]), (0, 0.5, [0, 0.1, 0.2, 0.3, 0.4, 0.5]), (7, 7, [7])],
)
def test_a_time_axis_has_round_numbers(low: float, high: float, steps: list[float]) -> None:
    assert round_steps(low, high) == pytest.approx(steps)


def test_a_line_lies_where_its_range_says_so_that_charts_can_be_compared() -> None:
    whole = line_chart("rate", [Line("a", [(50, 1), (60, 1)])], "s", "n", over=(0, 100))
    polyline = ElementTree.fromstring(whole).find(".//polyline")
    assert polyline is not None
    first, last = (float(point.partition(",")[0]) for point in polyline.attrib["points"].split())
    assert pytest.approx(first, abs=0.1) == LEFT + (WIDTH - LEFT - RIGHT) / 2
    assert last < WIDTH - RIGHT
