from __future__ import annotations

import signal

import pytest

from twopc.cli.signals import interruptible


def test_sigterm_ends_a_command_as_ctrl_c_does_and_no_longer_than_it_lasts() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
