"""How long is waited for what was decided: without a broker, over what it would list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest

from twopc.errors import Unavailable
from twopc.kafka.clients import retry
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.input.marker_wait import await_markers

COMMITTING, ABORTING, OPEN = BrokerState.PREPARE_COMMIT, BrokerState.PREPARE_ABORT, BrokerState.ONGOING
DONE = BrokerState.COMPLETE_COMMIT


class Listings:
    """A broker that lists this, then that; the last for ever."""

    def __init__(self, *listings: Mapping[str, BrokerState]) -> None:
        self._listings: Sequence[Mapping[str, BrokerState]] = listings
        self.asked = 0

    def list_transactions(self) -> dict[str, BrokerState]:
        self.asked += 1
        return dict(self._listings[min(self.asked, len(self._listings)) - 1])


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that passes only where somebody sleeps."""
    made = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        made.now += seconds

    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=lambda: made.now, sleep=sleep))


def test_what_is_open_or_done_is_not_waited_for() -> None:
    await_markers(broker := Listings({"a": OPEN, "b": DONE}), 30.0)
    assert broker.asked == 1


@pytest.mark.parametrize("ending", [COMMITTING, ABORTING])
def test_what_is_being_ended_is_waited_for(ending: BrokerState) -> None:
    await_markers(broker := Listings({"a": ending}, {"a": ending}, {"a": DONE}), 30.0)
    assert broker.asked == 3


def test_what_others_end_meanwhile_is_not_waited_for() -> None:
    await_markers(broker := Listings({"a": COMMITTING}, {"a": DONE, "b": COMMITTING}), 30.0)
    assert broker.asked == 2


def test_what_never_ends_is_named_after_a_bounded_time() -> None:
    with pytest.raises(Unavailable, match=r"have been ending a, b for 30 s"):
        await_markers(Listings({"a": COMMITTING, "b": ABORTING, "c": OPEN}), 30.0)
