"""The cache in front of the keyed state: whatever its bounds, what comes out is what a cache-less store would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.operators import Chain, StatefulMap, held
from twopc.protocol.ids import TopicPartition
from twopc.serde import Json, Serde, String
from twopc.testing.rows import InputRow, batch_of

P0 = TopicPartition("in", 0)


class DictStore:
    """Counts what it is asked, and can refuse to write."""

    def __init__(self) -> None:
        self.states: dict[held.Address, bytes] = {}
        self.reads = 0
        self.written: list[int] = []
        self.refuses = False

    def get_many(self, name: str, keys: Sequence[held.Address]) -> list[bytes | None]:
        self.reads += len(keys)
        return [self.states.get(key) for key in keys]

    def put_many(self, name: str, items: Sequence[tuple[TopicPartition, bytes, bytes | None]]) -> None:
        if self.refuses:
            raise OSError("disk full")
        self.written.append(len(items))
        for partition, key, state in items:
            if state is None:
                self.states.pop((partition, key), None)
            else:
                self.states[partition, key] = state


def bounded(monkeypatch: pytest.MonkeyPatch, *, entries: int, unwritten: int) -> None:
    monkeypatch.setattr(held, "WEIGHT_MAX", entries * held.WEIGHT_OF_ENTRY)
    monkeypatch.setattr(held, "UNWRITTEN_MAX", unwritten)


def forgetful(state: Any, value: int) -> tuple[Any, Any]:
    """A sum that forgets its key at every multiple of five, and is no integer at every multiple of three."""
    total = int(state or 0) + value
    return (None if total % 5 == 0 else float(total) if total % 3 == 0 else total), total


def spelt(state: str | None, value: int) -> tuple[str | None, str]:
    text = (state or "") + str(value)
    return (None if len(text) > 6 else text), text


RECORDS = st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.integers(0, 9), st.integers(0, 1))


@given(
    batches=st.lists(st.lists(RECORDS, max_size=8), max_size=12),
    step=st.sampled_from([("json", forgetful, Json()), ("text", spelt, String())]),
    entries=st.integers(0, 6),
    unwritten=st.integers(0, 6),
)
def test_outputs_and_state_do_not_depend_on_the_bounds(
    batches: list[list[tuple[bytes, int, int]]], step: tuple[str, Any, Serde], entries: int, unwritten: int
) -> None:
    name, function, serde = step
    model: dict[held.Address, Any] = {}
    store = DictStore()
    chain = Chain([StatefulMap(function, name, serde)], store)
    with pytest.MonkeyPatch.context() as monkeypatch:
        bounded(monkeypatch, entries=entries, unwritten=unwritten)
        for batch in batches:
            expected = []
            for key, value, partition in batch:
                address = (TopicPartition("in", partition), key)
                model[address], output = function(model.get(address), value)
                expected.append(output)
            found = chain.process(batch_of([InputRow(v, key_=k, partition_=p) for k, v, p in batch])).values
            assert found == expected
    chain.write_back()
    assert store.states == {address: serde.serialize(state) for address, state in model.items() if state is not None}


def test_changes_are_written_when_many_have_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=1_000, unwritten=3)
    store, chain = touched(monkeypatch, 8)
    assert store.written == [4, 4]
    chain.write_back()
    assert store.written == [4, 4]


def test_what_is_held_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=10, unwritten=1_000)
    store, _ = touched(monkeypatch, 100)
    assert len(store.states) >= 100 - 2 * 11
    assert store.reads == 100


def test_what_the_store_refused_is_written_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=1_000, unwritten=1_000)
    store, chain = touched(monkeypatch, 2)
    store.refuses = True
    with pytest.raises(OSError, match="disk full"):
        chain.write_back()
    store.refuses = False
    chain.write_back()
    assert store.written == [2]


def touched(monkeypatch: pytest.MonkeyPatch, keys: int) -> tuple[DictStore, Chain]:
    """One record for each of so many keys, a batch each."""
    store = DictStore()
    chain = Chain([StatefulMap(forgetful, "sum", Json())], store)
    for number in range(keys):
        chain.process(batch_of([InputRow(1, key_=b"%d" % number)]))
    return store, chain
