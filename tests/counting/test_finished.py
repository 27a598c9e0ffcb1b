"""The judge of a finished job finds each thing that can be wrong with its output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.counting.finished import FinishedJob
from tests.counting.numbered_input import NumberedInput
from twopc.testing.topics import Read

SOURCE = NumberedInput((b"a", b"b", b"c", b"d"), partitions=2, records=8)
RIGHT = [(b"a", b"0:1"), (b"c", b"2:1"), (b"a", b"4:2"), (b"c", b"6:2")]
OTHERS = [(b"b", b"1:1"), (b"d", b"3:1"), (b"b", b"5:2"), (b"d", b"7:2")]


def reads(*partitions: Sequence[tuple[bytes, bytes]]) -> list[Read]:
    return [
        Read("out", partition, offset, key, value, 0)
        for partition, records in enumerate(partitions)
        for offset, (key, value) in enumerate(records)
    ]


def judged(monkeypatch: pytest.MonkeyPatch, *views: list[Read]) -> list[str]:
    """What the judge says where its readers see these, one after the other."""
    seen = iter(views * 2)
    monkeypatch.setattr("tests.counting.finished.read_topic", lambda *_, **__: next(seen))
    return list(FinishedJob("there:1", Path(), "job", "in", "out", SOURCE, Path()).judge_output())


def test_an_output_that_is_the_inputs_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, reads(RIGHT, OTHERS)) == []


@pytest.mark.parametrize(
    ("records", "finding"),
    [
        pytest.param(RIGHT[:-1], "lost", id="a record is missing"),
        pytest.param([*RIGHT, RIGHT[-1]], "duplicated", id="a record comes twice"),
        pytest.param([RIGHT[2], RIGHT[0], *RIGHT[1::2]], "reordered", id="a key's records change places"),
        pytest.param([RIGHT[1], RIGHT[0], *RIGHT[2:]], "is late", id="two keys of a partition change places"),
        pytest.param([*RIGHT, (b"a", b"9:3")], "foreign", id="a record that no input makes"),
    ],
)
def test_what_is_wrong_with_an_output_is_found(
    monkeypatch: pytest.MonkeyPatch, records: list[tuple[bytes, bytes]], finding: str
) -> None:
    assert any(finding in said for said in judged(monkeypatch, reads(records, OTHERS)))


def test_two_readers_that_see_different_records_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    [said] = judged(monkeypatch, reads(RIGHT, OTHERS), reads(RIGHT, OTHERS[:-1]))
    assert "two readers do not agree" in said
