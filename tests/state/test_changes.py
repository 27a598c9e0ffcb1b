"""Changes since a whole snapshot: noted while they are few, stored, and read back as they were written."""

from __future__ import annotations

import pytest

from twopc.errors import CheckpointCorrupted
from twopc.protocol.envelope import encode_fact
from twopc.state.backend import Family
from twopc.state.changes import MOST_BYTES, MOST_KEYS, ChangeLog, Changes


def begun() -> ChangeLog:
    log = ChangeLog()
    log.restart()
    return log


def noted(log: ChangeLog, family: Family) -> dict[bytes, bytes | None]:
    found = log.since_base()
    assert found is not None
    return dict(found.families[family])


def test_before_a_whole_snapshot_nothing_is_known() -> None:
    log = ChangeLog()
    log.note(Family.KEYED, [(b"a", b"1")])
    assert log.since_base() is None


def test_the_last_value_of_each_key_is_kept_and_that_it_was_deleted() -> None:
    log = begun()
    log.note(Family.KEYED, [(b"a", b"1"), (b"b", b"1")])
    log.note(Family.KEYED, [(b"a", b"2"), (b"b", None)])
    log.note(Family.POSITIONS, [(b"a", b"3")])
    assert (noted(log, Family.KEYED), noted(log, Family.POSITIONS)) == ({b"a": b"2", b"b": None}, {b"a": b"3"})


def test_what_was_told_does_not_change_afterwards() -> None:
    log = begun()
    before = log.since_base()
    log.note(Family.KEYED, [(b"a", b"1")])
    assert before is not None
    assert not before.families[Family.KEYED]


@pytest.mark.parametrize(
    "items",
    [[(b"%d" % number, b"") for number in range(MOST_KEYS + 1)], [(b"a", b"x" * MOST_BYTES)]],
    ids=["keys", "bytes"],
)
def test_too_much_is_not_kept_before_the_next_whole_snapshot(items: list[tuple[bytes, bytes | None]]) -> None:
    log = begun()
    log.note(Family.KEYED, items)
    log.note(Family.KEYED, [(b"b", b"1")])
    assert log.since_base() is None
    log.restart()
    assert log.since_base() is not None


def test_a_key_that_is_written_again_and_again_is_not_too_much() -> None:
    log = begun()
    for number in range(10 * MOST_KEYS):
        log.note(Family.POSITIONS, [(b"a", b"%050d" % number)])
    assert noted(log, Family.POSITIONS) == {b"a": b"%050d" % (10 * MOST_KEYS - 1)}


def test_what_is_stored_is_read_back() -> None:
    changes = Changes({Family.KEYED: {b"\x00\xff": b"", b"gone": None}, Family.POSITIONS: {b"p": b"1"}})
    assert Changes.decode(changes.encode(), "here.json") == changes


@pytest.mark.parametrize(
    "body", [{"elsewhere": []}, {"keyed": [["zz", "00"]]}, {"keyed": [["00"]]}, {"keyed": [[None, "00"]]}, {"keyed": 1}]
)
def test_another_shape_is_refused_by_name(body: dict[str, object]) -> None:
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        Changes.decode(encode_fact("state-changes", body), "here.json")
