"""What may be undelivered: so much that any broker has it in time for a checkpoint, and no less than is useful."""

from __future__ import annotations

import pytest

from twopc.kafka.output.backlog import LEAST, MOST, RATE_SECONDS, Backlog

TIMEOUT = 60.0
BATCH_RECORDS, BATCH_BYTES = 100, 20_000
STEP = 0.2
RATES = [20_000, 100_000, 500_000, 3_000_000]


class Writer:
    """Writes without end, as far as it may, to a broker that takes `rate` bytes a second, behind a first `burst`."""

    def __init__(self, rate: float, burst: float, timeout: float = TIMEOUT) -> None:
        self.backlog = Backlog(timeout)
        self.now = 0.0
        self.left = 0.0
        self.delivered = 0.0
        self._rate, self._burst = rate, burst

    def write(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            while self.backlog.has_room:
                self.left += BATCH_RECORDS
                self.backlog.took(BATCH_RECORDS, BATCH_BYTES)
            self._passes()

    def checkpoint(self) -> float:
        """Wait until all is delivered; return how long that took."""
        began = self.now
        while self.left:
            self._passes()
        return self.now - began

    def _passes(self) -> None:
        self.now += STEP
        can = (self._rate * STEP + self._burst) * BATCH_RECORDS / BATCH_BYTES
        took = min(can, self.left)
        self._burst = (can - took) * BATCH_BYTES / BATCH_RECORDS if self._burst else 0
        self.left -= took
        self.delivered += took * BATCH_BYTES / BATCH_RECORDS
        self.backlog.look(int(self.left), self.now)


@pytest.mark.parametrize("timeout", [20.0, TIMEOUT, 600.0])
@pytest.mark.parametrize("burst_seconds", [0, 11])
@pytest.mark.parametrize("rate", RATES)
def test_every_checkpoint_is_in_time_however_slow_the_broker_and_whatever_it_let_pass_at_first(
    rate: int, burst_seconds: int, timeout: float
) -> None:
    writer = Writer(rate, rate * burst_seconds, timeout)
    for _ in range(10):
        writer.write(7)
        assert writer.checkpoint() < timeout * 0.75


@pytest.mark.parametrize("rate", RATES)
def test_a_broker_is_never_without_work(rate: int) -> None:
    writer = Writer(rate, 0)
    writer.write(100)
    assert writer.delivered > 0.9 * rate * 100


def test_what_may_be_undelivered_is_what_was_delivered_in_a_part_of_the_time_out_within_bounds() -> None:
    backlog = Backlog(4 * RATE_SECONDS)
    assert backlog.limit == LEAST
    backlog.took(1_000, 1_000_000)
    assert not backlog.has_room
    backlog.look(400, 1.0)
    assert (backlog.has_room, backlog.limit) == (True, 600_000)
    backlog.took(100, 100_000_000)
    backlog.look(0, 2.0)
    assert backlog.limit == MOST
    backlog.look(0, 2.1 + RATE_SECONDS)
    assert backlog.limit == LEAST


def test_a_late_checkpoint_halves_it_and_one_in_time_takes_that_back() -> None:
    backlog = Backlog(TIMEOUT)
    backlog.late()
    backlog.late()
    assert backlog.limit == LEAST // 4
    backlog.in_time()
    assert backlog.limit == LEAST // 2
    backlog.in_time()
    backlog.in_time()
    assert backlog.limit == LEAST


def test_what_a_client_counts_besides_records_is_no_record() -> None:
    backlog = Backlog(TIMEOUT)
    backlog.took(1, 100)
    backlog.look(7, 1.0)
    backlog.look(0, 2.0)
    assert backlog.describe(3.0).startswith("0 records (0 kB) are under way, 0.1 kB/s arrived lately")


def test_who_waits_is_told_the_rate_and_the_broker_that_throttles_now_and_then() -> None:
    backlog = Backlog(TIMEOUT)
    backlog.took(10, 50_000)
    backlog.look(10, 0.0)
    backlog.look(4, 10.0)
    assert backlog.describe(10.0) == (
        "4 records (20 kB) are under way, 3.0 kB/s arrived lately: is a broker slow, or overloaded?"
    )
    backlog.throttled("127.0.0.1:9092/1", 2.04)
    assert "; broker 127.0.0.1:9092/1 throttles this client, by 2.0 s when it last said so" in backlog.describe(10.0)
    assert [backlog.is_to_tell(now) for now in (0.0, 1.0, 59.0, 60.0, 61.0)] == [True, False, False, True, False]
