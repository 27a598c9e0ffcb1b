"""Changes since a whole snapshot: noted while they are few, stored, and read back as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.errors import CheckpointCorrupted, ForeignFile
from twopc.state.backend import Family
from twopc.state.changes import MOST_BYTES, MOST_KEYS, ChangeLog, Changes, changes_in, whole_state_in


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


def test_what_is_stored_is_read_back(tmp_path: Path) -> None:
    changes = Changes({Family.KEYED: {b"\x00\xff": b"", b"gone": None}, Family.POSITIONS: {b"p": b"1"}})
    (tmp_path / "changes.json").write_bytes(changes.encode())
    assert (changes_in(tmp_path), whole_state_in(tmp_path)) == (changes, None)


def test_a_whole_state_is_read_back_as_that_and_never_as_changes(tmp_path: Path) -> None:
    whole = Changes({Family.KEYED: {b"a": b"1"}}, is_whole=True)
    (tmp_path / "whole.json").write_bytes(whole.encode())
    assert (changes_in(tmp_path), whole_state_in(tmp_path)) == (None, whole)
    (tmp_path / "changes.json").write_bytes(whole.encode())
    with pytest.raises(ForeignFile, match=r"changes\.json"):
        changes_in(tmp_path)


def test_a_state_that_began_empty_is_known_whole_without_what_was_deleted() -> None:
    log = ChangeLog()
    log.begin()
    log.note(Family.KEYED, [(b"a1", b"1"), (b"a2", b"22"), (b"b", b"3")])
    log.note(Family.KEYED, [(b"b", None), (b"never there", None)])
    log.note_prefix_deleted(Family.KEYED, b"a2")
    log.note(Family.OPERATOR, [(b"a2", b"4")])
    found = log.since_base()
    assert found is not None
    assert found.is_whole
    assert [dict(found.families[family]) for family in Family] == [{}, {b"a2": b"4"}, {b"a1": b"1"}]
    assert found.size_bytes == len(b"a11a24")


def test_after_a_snapshot_in_files_what_is_written_is_no_longer_the_whole() -> None:
    log = ChangeLog()
    log.begin()
    log.note(Family.KEYED, [(b"a", b"1")])
    log.restart()
    found = log.since_base()
    assert found is not None
    assert (found.is_whole, found.size_bytes) == (False, 0)


def test_which_keys_a_deleted_prefix_had_is_unknown_after_a_snapshot_in_files() -> None:
    log = begun()
    log.note_prefix_deleted(Family.KEYED, b"a")
    assert log.since_base() is None


@pytest.mark.parametrize(
    "body", [{"elsewhere": []}, {"keyed": [["zz", "00"]]}, {"keyed": [["00"]]}, {"keyed": [[None, "00"]]}, {"keyed": 1}]
)
def test_another_shape_is_refused_by_name(body: dict[str, object]) -> None:
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        Changes.of_json(body, "here.json", is_whole=False)
