"""Calls that are given a time, and may not keep it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from twopc.kafka.clients.bounded_call import Overdue, call_within

LONG = 60.0


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What a call waits for; it comes when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_what_comes_back_in_time_is_returned() -> None:
    assert call_within(LONG, lambda: 7) == 7


def test_what_is_raised_in_time_is_raised() -> None:
    def call() -> None:
        raise KeyError("as it was")

    with pytest.raises(KeyError, match="as it was"):
        call_within(LONG, call)


def test_a_call_that_is_overdue_is_left_behind(never: threading.Event) -> None:
    with pytest.raises(Overdue):
        call_within(0.01, never.wait)


def test_a_call_that_is_left_behind_keeps_no_process_alive(never: threading.Event) -> None:
    made_by: list[threading.Thread] = []

    def call() -> None:
        made_by.append(threading.current_thread())
        never.wait()

    with pytest.raises(Overdue):
        call_within(0.01, call)
    assert [thread.daemon for thread in made_by] == [True]
