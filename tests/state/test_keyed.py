"""State as operators see it."""

from __future__ import annotations

from twopc.operators.write_back_cache import KeyedStateStore
from twopc.state.keyed import KeyedState, OperatorState, keyed_states
from twopc.state.layout import StateName
from twopc.state.memory import MemoryBackend

COUNT, COUNTER, OTHERS = StateName("n", "count"), StateName("n", "counter"), StateName("m", "count")
FIRST, SECOND = 1, 2


def test_the_same_key_in_two_partitions_has_two_values() -> None:
    state: KeyedStateStore = KeyedState(MemoryBackend())
    state.put_many(COUNT, FIRST, [b"k"], [b"1"])
    state.put_many(COUNT, SECOND, [b"k"], [b"2"])
    assert [state.get_many(COUNT, partition, [b"k"]) for partition in (SECOND, FIRST)] == [[b"2"], [b"1"]]


def test_the_same_key_in_two_states_has_two_values() -> None:
    state = KeyedState(MemoryBackend())
    state.put_many(COUNT, FIRST, [b"k"], [b"1"])
    state.put_many(COUNTER, FIRST, [b"k"], [b"2"])
    state.put_many(OTHERS, FIRST, [b"k"], [b"3"])
    assert state.get_many(COUNT, FIRST, [b"k"]) == [b"1"]


def test_each_state_and_partition_that_has_a_key_is_found_in_the_order_of_keys() -> None:
    backend = MemoryBackend()
    state = KeyedState(backend)
    everything = [(OTHERS, 2), (COUNT, 1), (COUNTER, 1), (COUNT, 256)]
    for name, number in everything:
        state.put_many(name, number, [b"", b"k", b"\xff" * 9], [b"1"] * 3)
    assert list(keyed_states(backend)) == everything


def test_a_value_of_none_deletes_the_key() -> None:
    state = KeyedState(MemoryBackend())
    state.put_many(COUNT, FIRST, [b"k", b""], [b"1", b"2"])
    state.put_many(COUNT, FIRST, [b"k"], [None])
    assert state.get_many(COUNT, FIRST, [b"k", b""]) == [None, b"2"]


def test_operator_state_is_kept_by_name() -> None:
    state = OperatorState(MemoryBackend())
    state.put("a", b"1")
    state.put("a", b"2")
    assert (state.get("a"), state.get("b")) == (b"2", None)
