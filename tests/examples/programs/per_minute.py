"""Clicks in windows: every click is in one window that was told once, or came too late and is told as such."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import JSON, NOON_MS, Output, Program, Sent

PAGES = 8
MINUTE_MS = 60_000
CLICK_MS = 1_500
OUT_OF_ORDER_MS = 30_000
"""More than the grace: some clicks are late, whichever partition is read first."""


class PerMinute(Program):
    """At the end a click of each page, an hour later, closes all windows of before."""

    name = "per_minute"
    inputs = ("clicks",)
    outputs = {"clicks-per-minute": JSON, "late-clicks": JSON}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        times = [NOON_MS + number * CLICK_MS - random.randrange(OUT_OF_ORDER_MS) for number in range(count)]
        clicks = [_click(random.randrange(PAGES), at_ms) for at_ms in times]
        return clicks + [_click(page, _last(count)) for page in range(PAGES)]

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        clicked = Counter(_window(json.loads(record.value)) for record in sent)
        late = Counter(_window(out.value) for out in output["late-clicks"])
        told = Counter((out.key or "", out.value["start"]) for out in output["clicks-per-minute"])
        wrong = [f"window {window} is told {times} times" for window, times in told.items() if times > 1]
        found = late + Counter(
            {(out.key or "", out.value["start"]): out.value["clicks"] for out in output["clicks-per-minute"]}
        )
        newest = max(start for _, start in clicked)
        wrong += [
            f"window {window} has {found[window]} clicks, late ones counted, instead of {clicks}"
            for window, clicks in clicked.items()
            if window[1] != newest and found[window] != clicks
        ]
        strange = [window for window in found if window not in clicked or window[1] == newest]
        return wrong + [f"nobody clicked in window {window}" for window in strange]


def _click(page: int, at_ms: int) -> Sent:
    return Sent(topic="clicks", value=json.dumps({"page": f"/{page}", "at_ms": at_ms}).encode())


def _last(count: int) -> int:
    return NOON_MS + count * CLICK_MS + 60 * MINUTE_MS


def _window(click: dict[str, int]) -> tuple[str, int]:
    return str(click["page"]), click["at_ms"] // MINUTE_MS * MINUTE_MS
