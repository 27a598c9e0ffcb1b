"""Asking again is not done in silence."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from twopc.errors import Unavailable
from twopc.kafka.clients import retry
from twopc.kafka.clients.answered import note_answer
from twopc.kafka.clients.reachability import NoBroker
from twopc.kafka.clients.retry import call_with_retry


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time that passes only where somebody sleeps."""
    made = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        made.now += seconds

    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: made.now, sleep=sleep))
    return made


def unavailable() -> None:
    raise Unavailable("no broker")


def test_who_waits_long_is_told_once_what_for(clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Unavailable, match="no broker"):
        call_with_retry(unavailable, 60.0)
    (said,) = caplog.messages
    assert said.startswith("no broker; asking again for another 5")
    assert clock.now >= 60.0


def test_a_short_wait_is_not_spoken_of(clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([Unavailable("not yet"), None])

    def ask() -> None:
        if (answer := next(answers)) is not None:
            raise answer

    call_with_retry(ask, 60.0)
    assert caplog.messages == []
    assert clock.now < retry.SILENT_SECONDS


def times_asked(servers: str) -> int:
    asked = 0

    def ask() -> None:
        nonlocal asked
        asked += 1
        raise NoBroker("no Kafka broker answers", servers)

    with pytest.raises(NoBroker):
        call_with_retry(ask, 60.0)
    return asked


@pytest.mark.usefixtures("clock")
def test_a_tool_asks_brokers_that_never_answered_once_and_goes_on_asking_those_that_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "is_spoken_for", lambda: False)
    assert times_asked("never:9092") == 1
    note_answer("once:9092")
    assert times_asked("once:9092") > 10


@pytest.mark.usefixtures("clock")
def test_a_job_goes_on_asking_whoever_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "is_spoken_for", lambda: True)
    assert times_asked("never:9092") > 10
