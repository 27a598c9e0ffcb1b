from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from twopc.report.chart import WIDTH
from twopc.report.lanes import MOST_MARKS, lanes

MARKS = [("checkpoints", 1.0, "checkpoint 1"), ("faults", 2.0, "a worker is killed"), ("checkpoints", 4.0, "<2>")]


def test_each_kind_has_a_lane_and_each_moment_a_mark_with_its_text() -> None:
    svg = Xml.fromstring(lanes("Timeline", MARKS, "s"))
    assert [title.text for title in svg.iter("title")] == [
        "1 s: checkpoint 1",
        "2 s: a worker is killed",
        "4 s: <2>",
    ]
    rows = [circle.get("cy") for circle in svg.iter("circle")]
    assert rows[0] == rows[2] != rows[1]


def test_later_is_further_right_and_all_is_on_the_picture() -> None:
    places = [float(each) for each in re.findall(r'cx="([\d.]+)"', lanes("Timeline", MARKS, "s"))]
    assert places == sorted(places)
    assert 0 < places[0] < places[-1] < WIDTH


def test_nothing_that_happened_is_a_picture_too() -> None:
    assert Xml.fromstring(lanes("Timeline", [], "s")).tag == "figure"


def test_a_page_stays_small_however_much_happened() -> None:
    many = [("checkpoints", float(at), "x") for at in range(5 * MOST_MARKS)]
    assert lanes("Timeline", many, "s").count("<circle") <= 2 * MOST_MARKS
