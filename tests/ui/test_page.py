"""The page in a real browser, of jobs that say what a test wants them to say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.stored_job import JOB
from tests.ui.kit import RUNS, Shown, stored_job
from twopc.errors import Unavailable
from twopc.protocol import figures
from twopc.protocol.job_description import JobDescription
from twopc.web.server import WebServer

# Chromium is fetched once.
pytestmark = pytest.mark.broker

WIDE, NARROW = ViewportSize(width=1300, height=900), ViewportSize(width=390, height=800)

VALUE = "<img src=x onerror='document.title=1'>"

ABORTED = {"outcome": "aborted", "triggered_ms": 5, "ended_ms": 60_005, "size_bytes": 0}

LETTER = {
    "letter": "wrong[0]@3",
    "record": "in[0]@7",
    "timestamp": 1_700_000_000_000,
    "step": "map(priced)",
    "exception": "KeyError",
    "message": "'price'",
    "key": "LGA",
    "value": VALUE,
    "replayed": False,
}


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    stored_job(tmp_path)
    return Shown(tmp_path, RUNS, [LETTER])


@pytest.fixture
def server(shown: Shown) -> Iterator[WebServer]:
    with shown.server() as server:
        yield server


@pytest.fixture
def page(browser: Browser, server: WebServer) -> Iterator[Page]:
    """The page, open; what goes wrong in it fails the test."""
    wrong: list[str] = []
    opened = browser.new_page(viewport=WIDE)
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.goto(f"http://{server.address}/")
    expect(opened.locator("#live")).to_have_text("live")
    yield opened
    opened.close()
    assert wrong == []


def test_it_answers_what_one_asks_at_night(page: Page) -> None:
    expect(page.locator("#job")).to_have_text(JOB)
    expect(page.locator("#phase")).to_have_text("checkpoint in flight")
    tiles = page.locator("#tiles")
    for text in ("7 completed", "2 aborted, 1 in flight", "1 open", "2 pre-committed", "100 in this attempt"):
        expect(tiles).to_contain_text(text)
    expect(page.locator("#graph")).to_contain_text("lag 7")
    expect(page.locator("#subtasks")).to_contain_text("not attached")
    expect(page.locator("#splits")).to_contain_text("orders-topic[3]")
    expect(page.locator("#failures")).to_contain_text("nothing")


def test_it_moves_without_a_reload(page: Page, shown: Shown) -> None:
    assert shown.described is not None
    shown.described = replace(shown.described, phase="running", completed=8)
    expect(page.locator("#phase")).to_have_text("running")
    expect(page.locator("#tiles")).to_contain_text("8 completed")
    shown.error = Unavailable("the coordinator is too busy to answer: ask again")
    expect(page.locator("#problem")).to_have_text("the coordinator is too busy to answer: ask again")
    shown.error = shown.described = None
    expect(page.locator("#phase")).to_have_text("no run found here")


def busy_for(described: JobDescription, milliseconds: int) -> JobDescription:
    """Return the job as its first subtask has spent this in the step `count`."""
    first, *others = described.subtasks
    assert first.progress is not None
    told = dict([figures.OPERATOR_BUSY_TIME.by_operator({"count": milliseconds})])
    progress = replace(first.progress, figures=figures.updated(first.progress.figures, told))
    return replace(described, subtasks=(replace(first, progress=progress), *others))


def test_a_step_says_how_busy_it_is(page: Page, shown: Shown) -> None:
    busy = page.locator("#graph g", has=page.locator("text", has_text=re.compile(r"^[1-9][0-9]* %$")))
    expect(busy).to_have_count(0)
    for milliseconds in (2_000, 3_000, 4_000):
        shown.described = busy_for(RUNS, milliseconds)
        page.wait_for_timeout(1_500)
    expect(busy).to_have_count(1)
    expect(busy).to_contain_text("count")


def test_a_checkpoint_opens_to_its_subtasks(page: Page) -> None:
    checkpoints = page.locator(".checkpoint")
    expect(checkpoints).to_have_count(2)
    expect(checkpoints.first.locator(".lane").first).to_be_hidden()
    checkpoints.first.locator("summary").click()
    expect(checkpoints.first.locator(".lane").first).to_contain_text("subtask 0")
    expect(checkpoints.first.locator(".lane").first).to_contain_text("stood 12 ms")


def test_what_is_usual_stands_below_the_checkpoints(page: Page) -> None:
    expect(page.locator("#usual")).to_contain_text("The last 2 that completed took 250 ms (median), 250 ms (99 %)")
    hundred = [
        {"outcome": "completed", "triggered_ms": 5, "ended_ms": 5 + 10 * number, "size_bytes": 1024 * number}
        for number in range(100, 0, -1)
    ]
    told = page.evaluate("async (found) => (await import('/timeline.js')).usual(found)", [*hundred, ABORTED])
    assert told == (
        "The last 100 that completed took 500 ms (median), 990 ms (99 %), 1.0 s (most); "
        "size 50.0 kB (median), 99.0 kB (99 %), 100.0 kB (most)."
    )


def test_the_state_of_a_key_is_found(page: Page) -> None:
    expect(page.locator("#state-name")).to_have_value("count")
    page.get_by_label("key", exact=True).fill("LGA")
    page.get_by_role("button", name="show").click()
    expect(page.locator("#state-found")).to_contain_text('"Mw=="')
    page.get_by_label("key", exact=True).fill("none")
    page.get_by_role("button", name="show").click()
    expect(page.locator("#state-found")).to_contain_text("checkpoint 2 has no such key")


def test_what_a_record_holds_is_shown_as_text_and_never_run(page: Page) -> None:
    expect(page.locator("#letters")).to_contain_text(VALUE)
    expect(page.locator("#letters")).to_contain_text("KeyError: 'price'")
    assert page.locator("#letters img").count() == 0
    expect(page).to_have_title(f"{JOB} · twopc")


def test_a_server_that_has_gone_is_said_and_found_again(browser: Browser, shown: Shown) -> None:
    with shown.server() as server:
        page = browser.new_page()
        page.goto(f"http://{server.address}/")
        expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#live")).to_contain_text("no connection")
    page.close()


@pytest.mark.parametrize("look", [{"viewport": NARROW}, {"viewport": WIDE, "color_scheme": "dark"}])
def test_it_fits_a_narrow_screen_and_a_dark_room(browser: Browser, server: WebServer, look: dict[str, Any]) -> None:
    page = browser.new_page(**look)
    page.goto(f"http://{server.address}/")
    expect(page.locator("#phase")).to_have_text("checkpoint in flight")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(18, 22, 28)" if "color_scheme" in look else "rgb(246, 247, 249)")
    page.close()
