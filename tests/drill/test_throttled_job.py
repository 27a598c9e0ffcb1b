from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from twopc.drill import throttled_job
from twopc.drill.throttled_job import POLL_RECORDS, ThrottledReader
from twopc.protocol.facts import SplitPosition
from twopc.record import Batch, Row
from twopc.source import SourceReader
from twopc.testing.rows import InputRow, batch_of


class Endless(SourceReader):
    """Hands over as many records as it is asked for."""

    def poll(self, timeout: float, most: int) -> Batch:
        return batch_of(InputRow(b"x") for _ in range(most))

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return ()

    def finished(self) -> bool:
        return False


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(throttled_job, "time", made)
    return made


def test_no_more_records_come_than_the_pace_allows(clock: Clock, tmp_path: Path) -> None:
    reader, seen = ThrottledReader(Endless(), 100.0, tmp_path / "finish"), 0
    while clock.now < 10.0:
        batch = reader.poll(0.02, 2_000)
        seen += 0 if batch is None else len(batch)
    assert 1_000 - POLL_RECORDS <= seen <= 1_000 + POLL_RECORDS


def test_who_polls_early_waits_no_longer_than_it_asked_for(clock: Clock, tmp_path: Path) -> None:
    reader = ThrottledReader(Endless(), 1.0, tmp_path / "finish")
    assert reader.poll(0.02, 10) is not None
    assert reader.poll(0.02, 10) is None
    assert clock.now == pytest.approx(0.02)


def test_told_to_finish_it_reads_as_fast_as_it_can(clock: Clock, tmp_path: Path) -> None:
    reader = ThrottledReader(Endless(), 1.0, tmp_path / "finish")
    (tmp_path / "finish").touch()
    assert [len(batch) for _ in range(3) if (batch := reader.poll(0.02, 2_000))] == [2_000, 2_000, 2_000]
