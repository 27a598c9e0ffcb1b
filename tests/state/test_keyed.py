"""State as operators see it."""

from __future__ import annotations

from twopc.kafka.topic_partition import TopicPartition
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.state.keyed import KeyedState, OperatorState
from twopc.state.memory import MemoryBackend

FIRST, SECOND = TopicPartition("in", 1), TopicPartition("in", 2)


def test_the_same_key_in_two_partitions_has_two_values() -> None:
    state: KeyedStateStore = KeyedState(MemoryBackend())
    state.put_many("count", FIRST, [b"k"], [b"1"])
    state.put_many("count", SECOND, [b"k"], [b"2"])
    assert [state.get_many("count", partition, [b"k"]) for partition in (SECOND, FIRST)] == [[b"2"], [b"1"]]


def test_the_same_key_in_two_states_has_two_values() -> None:
    state = KeyedState(MemoryBackend())
    state.put_many("count", FIRST, [b"k"], [b"1"])
    state.put_many("counter", FIRST, [b"k"], [b"2"])
    assert state.get_many("count", FIRST, [b"k"]) == [b"1"]


def test_a_value_of_none_deletes_the_key() -> None:
    state = KeyedState(MemoryBackend())
    state.put_many("count", FIRST, [b"k", b""], [b"1", b"2"])
    state.put_many("count", FIRST, [b"k"], [None])
    assert state.get_many("count", FIRST, [b"k", b""]) == [None, b"2"]


def test_operator_state_is_kept_by_name() -> None:
    state = OperatorState(MemoryBackend())
    state.put("a", b"1")
    state.put("a", b"2")
    assert (state.get("a"), state.get("b")) == (b"2", None)
