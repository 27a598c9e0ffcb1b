"""Days of a timezone, from their first instant to that of the next: `Tumbling("1d", timezone=...)`."""

from __future__ import annotations

import pytest

from tests.worked_examples.window_example import WindowExample
from twopc import Tumbling

DAYS = [
    pytest.param("Europe/Berlin", 1743289200000, 1743372000000, 23, id="Berlin 2025-03-30"),
    pytest.param("Europe/Berlin", 1761429600000, 1761519600000, 25, id="Berlin 2025-10-26"),
    pytest.param("America/Sao_Paulo", 1541300400000, 1541383200000, 23, id="Sao Paulo 2018-11-04, no midnight"),
    pytest.param("America/Havana", 1730606400000, 1730696400000, 25, id="Havana 2024-11-03, two midnights"),
    pytest.param("Asia/Kathmandu", 1735668900000, 1735755300000, 24, id="Kathmandu 2025-01-01"),
    pytest.param("Pacific/Apia", 1325152800000, 1325239200000, 24, id="Apia 2011-12-29, before a day that was not"),
]


@pytest.mark.parametrize(("timezone", "start", "end", "hours"), DAYS)
def test_a_day_has_what_is_from_its_first_millisecond_to_its_last(
    timezone: str, start: int, end: int, hours: int
) -> None:
    assert end - start == hours * 3_600_000
    told = WindowExample(Tumbling("1d", timezone=timezone)).put(f"{start - 1} {start} {end - 1} {end}")
    assert told[0].endswith(f",{start})=1@{start - 1}")
    assert told[1:] == [f"{end} -> [{start},{end})=2@{end - 1}"]


def test_half_past_midnight_comes_twice_in_havana_and_is_in_one_day() -> None:
    told = WindowExample(Tumbling("1d", timezone="America/Havana")).put("1730608200000 1730611800000 1730696400000")
    assert told == ["1730696400000 -> [1730606400000,1730696400000)=2@1730696399999"]


# Hours of a timezone are not refused: `test_window_starts` has those that clocks show twice, and halves of an hour.
