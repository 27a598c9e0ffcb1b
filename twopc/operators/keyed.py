"""stateful_map: a function with a state for each key, kept with the input partition that the key was read from.

- A batch reads each of its keys once and writes each of them at most once, after every function call has succeeded: a
  batch changes all of its state or none.
- Within a key, records are seen in the order of their partition.
- The function sees every state as its serde gives it back, also within a batch: outputs don't depend on where a batch
  ended, and a state that the function goes on changing doesn't change an output that shares it.
- Two partitions never share a state, even for equal keys: that is what lets state move with its partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from twopc.column import ColumnError, last_taken, locate, map_column
from twopc.errors import UserCodeError
from twopc.operators.steps import StatefulMap
from twopc.protocol.ids import TopicPartition
from twopc.record import Batch, Row
from twopc.serde import Bytes, Json, Serde, String

Address = tuple[TopicPartition, bytes]
"""Where the state of one key is: its input partition, and the key as bytes."""


_EXACT = frozenset({Bytes, Json, String})
_SCALARS = frozenset({bool, bytes, int, str})
"""What can't be changed in place, and comes back from these serdes as it was: needs no coding between two calls."""


class KeyedStateStore(Protocol):
    """Keyed state under a name, by input partition and key. Used by one thread."""

    def get_many(self, name: str, keys: Sequence[Address]) -> list[bytes | None]:
        """Return the state of each address, None where there is none, in the order of `keys`."""

    def put_many(self, name: str, items: Sequence[tuple[TopicPartition, bytes, bytes | None]]) -> None:
        """Write (partition, key, state) items; a state of None deletes."""


def stateful_map(step: StatefulMap, store: KeyedStateStore, batch: Batch) -> Batch:
    slot_of: dict[Address, int] = {}
    slots = [slot_of.setdefault(address, len(slot_of)) for address in _addresses(step, batch)]
    addresses = list(slot_of)
    stored = store.get_many(step.name, addresses)
    outputs, states = _apply(step, stored, slots, batch.values)
    changes = [(*address, new) for address, new, old in zip(addresses, states, stored, strict=True) if new != old]
    if changes:
        store.put_many(step.name, changes)
    return batch.with_values(outputs)


def key_bytes(key: Any) -> bytes:
    """Return the form in which a key addresses its state: bytes as they are, text in UTF-8, the rest canonical JSON."""
    if isinstance(key, bytes):
        return key
    return key.encode() if isinstance(key, str) else Json.canonical(key)


def _addresses(step: StatefulMap, batch: Batch) -> list[Address]:
    keys = batch.keys
    if set(map(type, keys)) != {bytes}:
        if None in keys:
            raise UserCodeError(
                f"record {locate(batch.rows[keys.index(None)])} has no key, and {step} keeps its state by key: "
                "give every record one before it, with map_records, or drop those without, with filter_records"
            )
        keys = map_column(key_bytes, keys)
    known: dict[tuple[Any, Any], TopicPartition] = {}
    return [(_partition(row, known), key) for row, key in zip(batch.rows, keys, strict=True)]


def _partition(row: Row, known: dict[tuple[Any, Any], TopicPartition]) -> TopicPartition:
    pair = (row.topic(), row.partition())
    partition = known.get(pair)
    if partition is None:
        partition = known[pair] = TopicPartition(str(pair[0]), int(pair[1] or 0))
    return partition


def _apply(
    step: StatefulMap, stored: list[bytes | None], slots: list[int], values: list[Any]
) -> tuple[list[Any], list[bytes | None]]:
    """Call the function for each value in order; return its outputs, and the states that it left behind."""
    states, outputs = list(stored), []
    held: dict[int, Any] = {}
    scalars = _SCALARS if type(step.state) in _EXACT else frozenset()
    rest = iter(values)
    try:
        for slot, value in zip(slots, rest, strict=True):
            state = held[slot] if slot in held else _decoded(step.state, states[slot])
            result = step.function(state, value)
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(f"the function must return a pair (new state, value), not {type(result).__name__}")
            new, output = result
            if type(new) in scalars:
                held[slot] = new
            else:
                held.pop(slot, None)
                states[slot] = _encoded(step.state, new)
            outputs.append(output)
    except Exception as error:
        raise ColumnError(last_taken(values, rest), error) from error
    for slot, new in held.items():
        try:
            states[slot] = _encoded(step.state, new)
        except ValueError as error:
            raise ColumnError(len(slots) - 1 - slots[::-1].index(slot), error) from error
    return outputs, states


def _decoded(serde: Serde, data: bytes | None) -> Any:
    try:
        return None if data is None else serde.deserialize(data)
    except Exception as error:
        raise ValueError(f"the stored state can't be decoded by {serde}: {error}") from error


def _encoded(serde: Serde, state: Any) -> bytes | None:
    try:
        return None if state is None else serde.serialize(state)
    except Exception as error:
        raise ValueError(f"the new state can't be encoded by {serde}: {error}") from error
