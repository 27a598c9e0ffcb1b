"""Where windows begin that are shifted, or aligned to the clocks of a timezone, and where they end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.window_kit import WindowHarness, at
from twopc import ConfigurationError, Hopping, Tumbling
from twopc.operators.window_starts import starts_of
from twopc.windows import Aligned

HOUR_MS = 3_600_000
MINUTE_MS = 60_000

BERLIN = "Europe/Berlin"
HAVANA = "America/Havana"  # clocks go back from 1:00 to 0:00, so that day has two midnights
SAO_PAULO = "America/Sao_Paulo"  # until 2018 clocks went from 0:00 to 1:00, and back from 0:00 to 23:00
LORD_HOWE = "Australia/Lord_Howe"  # clocks change by half an hour
APIA = "Pacific/Apia"  # there was no 2011-12-30
ST_JOHNS = "America/St_Johns"  # until 2011 clocks went back from 0:01 to 23:01
KATHMANDU = "Asia/Kathmandu"  # 5:45 ahead of UTC
CASABLANCA = "Africa/Casablanca"  # clocks change twice within six weeks


def utc(text: str) -> int:
    """Unix milliseconds of a time in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


def window(kind: Aligned, stamp: int) -> tuple[int, int]:
    """The latest window that holds this time."""
    starts = starts_of(kind)
    start = starts.latest(stamp)
    return start, starts.end(start)


def shown(zone: str, stamp: int) -> str:
    return datetime.fromtimestamp(stamp / 1_000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


def windows_of_day(kind: Aligned, begin: str, end: str) -> list[int]:
    """The hours that each window has between two times in UTC."""
    starts, lengths = starts_of(kind), []
    start = utc(begin)
    assert starts.latest(start) == start
    while start < utc(end):
        lengths.append((starts.end(start) - start) / HOUR_MS)
        start = starts.end(start)
    assert start == utc(end)
    return [int(length) if length == int(length) else length for length in lengths]  # type: ignore[misc]


def test_an_offset_shifts_windows_from_the_multiples() -> None:
    assert window(Tumbling("1h", offset="15m"), utc("2026-01-01T10:14")) == (
        utc("2026-01-01T09:15"),
        utc("2026-01-01T10:15"),
    )
    told = WindowHarness(Hopping("10ms", every="5ms", offset="2ms")).put(at(("a", 7), ("a", 100)))
    assert told["final"] == [("a", 2, 12, 1), ("a", 7, 17, 1)]


def test_a_local_day_has_23_or_25_hours_where_clocks_change() -> None:
    days = Tumbling("1d", timezone=BERLIN)
    assert windows_of_day(days, "2026-03-27T23:00", "2026-03-30T22:00") == [24, 23, 24]
    assert windows_of_day(days, "2026-10-23T22:00", "2026-10-26T23:00") == [24, 25, 24]


def test_a_local_day_may_begin_later_than_at_midnight() -> None:
    days = Tumbling("1d", offset="6h", timezone=BERLIN)
    assert windows_of_day(days, "2026-03-28T05:00", "2026-03-30T04:00") == [23, 24]


def test_a_day_with_two_midnights_is_one_and_begins_at_the_first() -> None:
    assert windows_of_day(Tumbling("1d", timezone=HAVANA), "2026-10-31T04:00", "2026-11-02T05:00") == [24, 25]


def test_a_day_without_a_midnight_begins_when_clocks_have_jumped_over_it() -> None:
    assert windows_of_day(Tumbling("1d", timezone=SAO_PAULO), "2018-11-03T03:00", "2018-11-05T02:00") == [24, 23]


def test_a_day_whose_clocks_go_back_at_its_end_has_25_hours() -> None:
    assert windows_of_day(Tumbling("1d", timezone=SAO_PAULO), "2018-02-17T02:00", "2018-02-19T03:00") == [25, 24]


def test_a_day_that_clocks_have_begun_goes_on_though_they_go_back_to_the_day_before() -> None:
    days = Tumbling("1d", timezone=ST_JOHNS)
    assert windows_of_day(days, "2010-11-06T02:30", "2010-11-08T03:30") == [24, 25]
    again = utc("2010-11-07T03:00")
    assert shown(ST_JOHNS, again) == "2010-11-06 23:30"
    assert window(days, again)[0] == utc("2010-11-07T02:30")


def test_a_day_that_there_was_not_has_no_window() -> None:
    assert windows_of_day(Tumbling("1d", timezone=APIA), "2011-12-29T10:00", "2011-12-31T10:00") == [24, 24]
    assert shown(APIA, utc("2011-12-30T10:00")) == "2011-12-31 00:00"


def test_local_hours_are_as_many_as_clocks_show() -> None:
    hours = Tumbling("1h", timezone=BERLIN)
    assert windows_of_day(hours, "2026-03-28T23:00", "2026-03-29T22:00") == [1] * 23
    assert windows_of_day(hours, "2026-10-24T22:00", "2026-10-25T23:00") == [1] * 25


def test_a_part_of_a_day_is_as_long_as_clocks_take_to_show_its_end() -> None:
    quarters = Tumbling("6h", timezone=BERLIN)
    assert windows_of_day(quarters, "2026-03-28T23:00", "2026-03-29T22:00") == [5, 6, 6, 6]
    assert windows_of_day(quarters, "2026-10-24T22:00", "2026-10-25T23:00") == [7, 6, 6, 6]


def test_hours_where_clocks_change_by_half_of_one_are_longer_and_shorter() -> None:
    hours = Tumbling("1h", timezone=LORD_HOWE)
    assert windows_of_day(hours, "2026-04-04T13:00", "2026-04-04T16:30") == [1, 1.5, 1]
    assert windows_of_day(hours, "2026-10-03T13:30", "2026-10-03T17:00") == [1, 1, 0.5, 1]


def test_local_hours_begin_at_the_quarters_that_clocks_show_elsewhere() -> None:
    start, end = window(Tumbling("1h", timezone=KATHMANDU), utc("2026-01-01T10:00"))
    assert (shown(KATHMANDU, start), end - start) == ("2026-01-01 15:00", HOUR_MS)


def test_hopping_windows_of_local_days_end_at_a_midnight() -> None:
    start, end = window(Hopping("7d", every="1d", timezone=BERLIN), utc("2026-03-25T12:00"))
    assert (shown(BERLIN, start), shown(BERLIN, end)) == ("2026-03-25 00:00", "2026-04-01 00:00")


@pytest.mark.parametrize(("offset", "day"), [(None, "Monday 00:00"), ("6d", "Sunday 00:00")])
def test_a_local_week_begins_on_monday_or_as_its_offset_says(offset: str | None, day: str) -> None:
    start, _ = window(Tumbling("7d", offset=offset, timezone=BERLIN), utc("2026-11-28T12:00"))
    assert datetime.fromtimestamp(start / 1_000, ZoneInfo(BERLIN)).strftime("%A %H:%M") == day


def test_windows_reach_as_far_as_timestamps_do_also_before_1970() -> None:
    for kind in (Tumbling("1d", timezone=BERLIN), Tumbling("1h", timezone=BERLIN), Tumbling("1h", offset="15m")):
        for stamp in (-(10**15), 0, utc("9999-12-31T23:59")):
            start, end = window(kind, stamp)
            assert start <= stamp < end


ZONES = st.sampled_from([BERLIN, HAVANA, SAO_PAULO, LORD_HOWE, KATHMANDU, CASABLANCA, ST_JOHNS])
MINUTES = st.integers(utc("2005-01-01") // MINUTE_MS, utc("2030-01-01") // MINUTE_MS)


def starts_by_minutes(zone: str, every_ms: int, offset_ms: int, since: int, until: int) -> Iterator[int]:
    """Look at the clocks minute by minute: a window begins where a multiple is shown or jumped over; a day once."""
    seen: set[int] = set()
    monday_ms = 4 * 24 * HOUR_MS if every_ms >= 24 * HOUR_MS else 0
    before = None
    for minute in range(since, until, MINUTE_MS):
        local = datetime.fromtimestamp(minute / 1_000, ZoneInfo(zone)).replace(tzinfo=UTC)
        now = int(local.timestamp()) * 1_000 - offset_ms - monday_ms
        if before is not None:
            begun = range(before + MINUTE_MS, now + 1, MINUTE_MS) if now > before else [now]
            numbers = {each // every_ms for each in begun if each % every_ms == 0}
            if numbers and (every_ms < 24 * HOUR_MS or not numbers <= seen):
                yield minute
            seen |= numbers
        before = now


@given(ZONES, MINUTES, st.sampled_from(["30m", "1h", "6h", "1d", "2d"]), st.sampled_from([0, 15, 29]))
def test_windows_by_local_time_begin_where_clocks_show_it(zone: str, minute: int, size: str, offset: int) -> None:
    kind = Tumbling(size, offset=f"{offset}m", timezone=zone)
    stamp = minute * MINUTE_MS
    margin = 3 * kind.size_ms + 24 * HOUR_MS
    around = list(starts_by_minutes(zone, kind.every_ms, kind.shift_ms, stamp - margin, stamp + margin))
    index = sum(start <= stamp for start in around)
    assert window(kind, stamp) == (around[index - 1], around[index])


@given(ZONES, MINUTES, st.sampled_from([("1d", "6h"), ("3d", "1d"), ("2h", "30m")]))
def test_a_record_is_in_all_windows_by_local_time_that_hold_its_time(
    zone: str, minute: int, sizes: tuple[str, str]
) -> None:
    kind = Hopping(sizes[0], every=sizes[1], timezone=zone)
    stamp = minute * MINUTE_MS
    starts, start = starts_of(kind), starts_of(kind).latest(stamp - 2 * kind.size_ms)
    expected = []
    while start <= stamp:
        if stamp < starts.end(start):
            expected.append(("a", start, starts.end(start), 1))
        start = starts.next(start)
    assert WindowHarness(kind).put(at(("a", stamp)))["current"] == expected


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Tumbling("1h", offset="1h"), "an offset is less than the distance"),
        (lambda: Tumbling("1h", offset="early"), "the offset of .* is not a duration"),
        (lambda: Tumbling("1d", timezone="Mars/Olympus"), r"no timezone 'Mars/Olympus'.*pip install tzdata"),
        (lambda: Tumbling("1d", timezone="Europe"), "no timezone 'Europe'"),
        (lambda: Tumbling("7h", timezone=BERLIN), "whole days, or at an even part of a day"),
        (lambda: Tumbling("36h", timezone=BERLIN), "whole days, or at an even part of a day"),
        (lambda: Hopping("3h", every="2h", timezone=BERLIN), "the size is a multiple of every"),
    ],
)
def test_windows_that_no_clock_could_show_are_refused(make: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        make()


def test_open_windows_of_another_timezone_are_refused_by_name() -> None:
    before = WindowHarness(Tumbling("1d", timezone=BERLIN))
    before.put(at(("a", utc("2026-11-28T12:00"))))
    after = WindowHarness(Tumbling("1d", timezone=HAVANA), store=before.store)
    with pytest.raises(ConfigurationError, match=r"America/Havana.* still open from before.*the rules of its timezone"):
        after.put(at(("a", utc("2026-11-28T12:00"))))


def test_a_kind_of_windows_is_named_as_it_was_written() -> None:
    assert str(Tumbling("1d", timezone=BERLIN)) == "Tumbling('1d', timezone='Europe/Berlin')"
    assert str(Hopping("1h", every="5m", offset=timedelta(minutes=1))) == "Hopping('1h', every='5m', offset='0:01:00')"
