"""Entries by time come out in order, once, whatever is at hand and whatever is only in the store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.operators import time_queue
from twopc.operators.time_queue import TimeQueue
from twopc.state.layout import StateName
from twopc.testing.states import DictStore

QUEUE = StateName("op", "$timers")

entries = st.tuples(st.integers(-5, 40), st.sampled_from([b"", b"a", b"a\0", b"\xff"]))
calls = st.lists(
    st.one_of(
        st.tuples(st.just("add"), entries),
        st.tuples(st.just("remove"), entries),
        st.tuples(st.just("pop"), st.integers(-5, 40)),
        st.just(("write back", None)),
        st.just(("restart", None)),
    ),
    max_size=60,
)


@pytest.mark.parametrize("at_hand", [1, 2, 1_000])
@given(calls=calls)
def test_entries_come_out_by_time_once_through_restarts(at_hand: int, calls: list[tuple[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_queue, "AT_HAND_MAX", at_hand)
        store = DictStore()
        queue, expected = TimeQueue(QUEUE, 3, store), set[tuple[int, bytes]]()
        for call, what in calls:
            match call:
                case "add":
                    queue.add(*what)
                    expected.add(what)
                case "remove":
                    queue.remove(*what)
                    expected.discard(what)
                case "pop":
                    first = min(expected, default=None)
                    assert queue.earliest <= (first[0] if first else float("inf"))
                    due = first if first is not None and first[0] <= what else None
                    assert queue.pop(what) == (due and (*due, b""))
                    expected.discard(due)
                case "write back":
                    queue.write_back()
                case _:
                    queue.write_back()
                    assert len(store.states) == len(expected)
                    queue = TimeQueue(QUEUE, 3, store)
        assert [queue.pop(100) for _ in expected] == [(*each, b"") for each in sorted(expected)]
        assert queue.pop(100) is None


def test_no_more_than_a_bounded_number_of_entries_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_queue, "AT_HAND_MAX", 10)
    queue = TimeQueue(QUEUE, 0, DictStore())
    assert queue.pop(0) is None
    for at in range(1, 1_000):
        queue.add(1_000 - at, b"")
        assert len(queue._at_hand) <= 21
    assert [entry[0] for entry in iter(lambda: queue.pop(1_000), None) if entry] == list(range(1, 1_000))


@pytest.mark.parametrize("is_frozen", [False, True])
def test_an_entry_that_is_moved_leaves_nothing_in_memory(monkeypatch: pytest.MonkeyPatch, is_frozen: bool) -> None:
    monkeypatch.setattr(time_queue, "AT_HAND_MAX", 10)
    monkeypatch.setattr(time_queue, "DIRTY_MAX", 20)
    monkeypatch.setattr(time_queue, "DIRTY_WHILE_FROZEN_MAX", 40)
    store = DictStore()
    store.is_frozen = is_frozen
    queue = TimeQueue(QUEUE, 0, store)
    assert queue.pop(0) is None
    for at in range(1, 1_000):
        queue.remove(at - 1, b"")
        queue.add(at, b"")
        queue.settle()
        assert len(queue._heap) <= 13
        assert len(queue._dirty) <= 41
    assert [queue.pop(1_000), queue.pop(1_000)] == [(999, b"", b""), None]


@pytest.mark.parametrize("at_hand", [1, 1_000])
@pytest.mark.parametrize("is_written", [False, True])
def test_of_an_entry_the_last_that_was_kept_comes_out(
    monkeypatch: pytest.MonkeyPatch, at_hand: int, is_written: bool
) -> None:
    monkeypatch.setattr(time_queue, "AT_HAND_MAX", at_hand)
    store = DictStore()
    queue = TimeQueue(QUEUE, 0, store)
    for at in (1, 2, 3):
        queue.add(at, b"a", b"old")
        queue.add(at, b"a", b"new")
    if is_written:
        queue.write_back()
        queue = TimeQueue(QUEUE, 0, store)
    assert [queue.pop(3) for _ in range(4)] == [*((at, b"a", b"new") for at in (1, 2, 3)), None]


def test_what_is_taken_before_it_was_written_is_not_written_and_what_was_written_is_deleted() -> None:
    store = DictStore()
    queue = TimeQueue(QUEUE, 3, store)
    queue.add(1, b"written")
    queue.write_back()
    assert queue.pop(0) is None
    queue.add(2, b"taken")
    assert [queue.pop(2), queue.pop(2)] == [(1, b"written", b""), (2, b"taken", b"")]
    queue.add(1, b"written")
    queue.remove(1, b"written")
    queue.write_back()
    assert [value for _, _, value in store.writes] == [b"", None]
    assert store.states == {}
