"""The first Ctrl-C is a wish that is answered in words; the second ends at once."""

from __future__ import annotations

import logging
import signal
import time

import pytest

from twopc.driver.signals import HEARD, StopSignals

WAIT_SECONDS = 60.0


def is_said(caplog: pytest.LogCaptureFixture) -> bool:
    deadline = time.monotonic() + WAIT_SECONDS
    while HEARD not in caplog.messages and time.monotonic() < deadline:
        time.sleep(0.01)
    return HEARD in caplog.messages


def test_the_first_ctrl_c_asks_for_a_stop_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), StopSignals() as signals:
        signal.raise_signal(signal.SIGINT)
        assert signals.requested
        assert is_said(caplog)


def test_the_second_ctrl_c_ends_at_once() -> None:
    with StopSignals() as signals:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert signals.requested


def test_ctrl_c_after_a_sigterm_ends_at_once_and_another_sigterm_changes_nothing() -> None:
    with StopSignals() as signals:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert signals.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with StopSignals():
        pass
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
