"""The difference between two checkpoints is every key that is not the same, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inspect.kit import LEFT, RIGHT, JobWithState
from twopc.errors import ConfigurationError
from twopc.inspect import ChangeKind, Difference, KeyChange, StateEntry, diff, open_checkpoint
from twopc.inspect.state import Address
from twopc.protocol.ids import SubtaskIndex
from twopc.state.layout import StateName

ADDED, REMOVED, CHANGED = ChangeKind


def shown(change: KeyChange) -> tuple[ChangeKind, bytes, bytes | None, bytes | None]:
    old, new = (None if entry is None else entry.raw for entry in (change.old, change.new))
    return change.kind, change.entry.stored_key, old, new


def test_added_removed_and_changed_keys_are_found_with_both_values(job: JobWithState) -> None:
    del job.values[LEFT, "count", b"EWR"]
    job.put(RIGHT, b"LGA", b"4")
    job.put(RIGHT, b"JFK", b"1")
    job.checkpoint()
    with open_checkpoint(1, checkpoint_dir=job.root) as old, open_checkpoint(2, checkpoint_dir=job.root) as new:
        difference = diff(old, new)
        assert [shown(change) for change in difference] == [
            (REMOVED, b"EWR", b"5", None),
            (ADDED, b"JFK", None, b"1"),
            (CHANGED, b"LGA", b"2", b"4"),
        ]
        assert difference.counts == {ADDED: 1, REMOVED: 1, CHANGED: 1}
        assert difference.same == 2


def test_a_partition_that_another_subtask_reads_now_is_the_same(job: JobWithState) -> None:
    job.owners = {0: (LEFT, RIGHT), 1: ()}
    job.checkpoint()
    with open_checkpoint(1, checkpoint_dir=job.root) as old, open_checkpoint(2, checkpoint_dir=job.root) as new:
        difference = diff(old, new)
        assert list(difference) == []
        assert difference.same == 4


def test_only_the_state_that_is_named_is_compared(job: JobWithState) -> None:
    job.put(LEFT, b"EWR", b"6")
    job.put(LEFT, b"EWR", b"1", "other")
    job.checkpoint()
    with open_checkpoint(1, checkpoint_dir=job.root) as old, open_checkpoint(2, checkpoint_dir=job.root) as new:
        assert [str(change.entry.state) for change in diff(old, new)] == ["count", "other"]
        assert [shown(change) for change in diff(old, new, "other")] == [(ADDED, b"EWR", None, b"1")]
        with pytest.raises(ConfigurationError, match="neither checkpoint has a state 'total'; they have: count, other"):
            diff(old, new, "total")


def test_what_operators_keep_is_compared_subtask_by_subtask(job: JobWithState) -> None:
    job.own = {0: b"a", 1: b"b"}
    job.checkpoint()
    job.own = {0: b"b", 1: b"b"}
    job.checkpoint()
    with open_checkpoint(2, checkpoint_dir=job.root) as old, open_checkpoint(3, checkpoint_dir=job.root) as new:
        assert [(change.entry.subtask, *shown(change)) for change in diff(old, new)] == [(0, CHANGED, b"", b"a", b"b")]


contents = st.dictionaries(st.binary(max_size=2), st.sampled_from([b"1", b"2"]), max_size=12)


@settings(deadline=None, max_examples=50)
@given(contents, contents)
def test_the_changes_are_what_makes_the_one_into_the_other(old: dict[bytes, bytes], new: dict[bytes, bytes]) -> None:
    def scan(values: dict[bytes, bytes]) -> list[tuple[Address, StateEntry]]:
        return [
            ((0, key, 0), StateEntry(StateName.parse("s"), SubtaskIndex(0), 0, key, values[key]))
            for key in sorted(values)
        ]

    difference = Difference(iter(scan(old)), iter(scan(new)))
    result = dict(old)
    for change in difference:
        key = change.entry.stored_key
        assert result.pop(key, None) == (None if change.old is None else change.old.raw)
        if change.new is not None:
            result[key] = change.new.raw
    assert result == new
    assert difference.same == len(old.items() & new.items())
