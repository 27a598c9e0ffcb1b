"""The cache in front of the keyed state: whatever its bounds, what comes out is what a cache-less store would give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Chain
from twopc.operators import StatefulMap, write_back_cache
from twopc.serde import Json, Serde, String
from twopc.state.layout import StateName
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import Address, DictStore


def bounded(monkeypatch: pytest.MonkeyPatch, *, entries: int, dirty: int) -> None:
    monkeypatch.setattr(write_back_cache, "CACHE_BYTES_MAX", entries * write_back_cache.ENTRY_BYTES)
    monkeypatch.setattr(write_back_cache, "DIRTY_MAX", dirty)


def used(*names: str) -> DictStore:
    """A store that has some of these states already."""
    return DictStore({(StateName.parse(name), 0, b"before"): b"1" for name in names})


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
    dirty=st.integers(0, 6),
)
def test_outputs_and_state_do_not_depend_on_the_bounds(
    batches: list[list[tuple[bytes, int, int]]], step: tuple[str, Any, Serde], entries: int, dirty: int
) -> None:
    name, function, serde = step
    model: dict[Address, Any] = {}
    store = DictStore()
    with pytest.MonkeyPatch.context() as monkeypatch:
        bounded(monkeypatch, entries=entries, dirty=dirty)
        chain = Chain([StatefulMap(function, name, serde)], store)
        for batch in batches:
            expected = []
            for key, value, partition in batch:
                address = (StateName.parse(name), partition, key)
                model[address], output = function(model.get(address), value)
                expected.append(output)
            found = chain.process(batch_of([InputRow(v, key_=k, partition_=p) for k, v, p in batch])).values
            assert found == expected
    chain.write_back()
    assert store.states == {address: serde.serialize(state) for address, state in model.items() if state is not None}


def test_changes_are_written_when_many_have_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=1_000, dirty=3)
    store, chain = touched(8)
    assert store.sizes == [4, 4]
    chain.write_back()
    assert store.sizes == [4, 4]


def test_nothing_is_written_while_a_writer_would_wait_until_very_much_has_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounded(monkeypatch, entries=1_000, dirty=3)
    monkeypatch.setattr(write_back_cache, "DIRTY_WHILE_FROZEN_MAX", 6)
    store = DictStore()
    store.is_frozen = True
    touch(store, *range(8))
    assert store.sizes == [7]


def test_keys_that_come_round_in_a_circle_find_as_many_as_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=50, dirty=1_000)
    store = used("sum")
    touch(store, *[number % 100 for number in range(1_000)])
    assert len(store.reads) < 700


def test_keys_that_are_new_and_come_again_soon_are_held_before_long(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=50, dirty=1_000)
    store = used("sum")
    chain = touch(store, *range(100))
    touch(store, *[number % 20 + 200 for number in range(10_000)], chain=chain)
    read = len(store.reads)
    touch(store, *[number % 20 + 200 for number in range(100)], chain=chain)
    assert len(store.reads) == read


def test_what_is_held_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=10, dirty=1_000)
    store, _ = touched(100)
    assert len(store.states) >= 100 - 11
    assert len(store.reads) == 100


def test_two_operators_share_what_may_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=100, dirty=1_000)
    store = used("one", "two")
    chain = Chain([StatefulMap(forgetful, name, Json()) for name in ("one", "two")], store)
    for key in [*range(80), *range(80)]:
        chain.process(batch_of([InputRow(1, key_=b"%d" % key)]))
    assert len(store.reads) > 2 * 80 + 40


def test_states_that_are_big_are_let_go_of_until_few_enough_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=100, dirty=1_000)
    store = used("last")
    chain = Chain([StatefulMap(lambda state, value: (value, value), "last", String())], store)
    chain.process(batch_of([InputRow("x" * 5_000, key_=b"%d" % key) for key in range(20)]))
    chain.process(batch_of([InputRow("y", key_=b"%d" % key) for key in range(20)]))
    assert len(store.reads) - 20 >= 20 - 100 * write_back_cache.ENTRY_BYTES // 5_000


def test_what_the_store_refused_is_written_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=1_000, dirty=1_000)
    store, chain = touched(2)
    store.refuses = True
    with pytest.raises(OSError, match="disk full"):
        chain.write_back()
    store.refuses = False
    chain.write_back()
    assert store.sizes == [2]


def test_a_store_that_had_nothing_is_not_asked_for_what_is_not_at_hand() -> None:
    store = DictStore()
    touch(store, *range(100))
    assert store.reads == []


def test_a_partition_of_which_the_store_has_something_is_asked_for_each_key() -> None:
    store = DictStore({(StateName.parse("sum"), 0, b"7"): b"2"})
    chain = touch(store, 1, 7)
    chain.process(batch_of([InputRow(1, key_=b"9", partition_=1)]))
    assert [key for _, _, key in store.reads] == [b"1", b"7"]
    chain.write_back()
    assert store.states[StateName.parse("sum"), 0, b"7"] == b"3.0"


def test_a_store_is_asked_again_once_some_was_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, entries=10, dirty=1_000)
    store = DictStore()
    chain = touch(store, *range(11))
    assert store.reads == []
    touch(store, 100, *range(11), chain=chain)
    assert len(store.reads) >= 2


def touched(keys: int) -> tuple[DictStore, Chain]:
    store = used("sum")
    return store, touch(store, *range(keys))


def touch(store: DictStore, *keys: int, chain: Chain | None = None) -> Chain:
    """One record for each of these keys, a batch each."""
    chain = chain or Chain([StatefulMap(forgetful, "sum", Json())], store)
    for key in keys:
        chain.process(batch_of([InputRow(1, key_=b"%d" % key)]))
    return chain
