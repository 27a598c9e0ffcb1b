"""Whole states of keys, from what is stored: the entries of a list or map as one value. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from twopc.state.entry_keys import by_key
from twopc.state.forms import ListOf, MapOf
from twopc.state.layout import StateName, parse_keyed_key

ByEntry = Mapping[StateName, type[ListOf] | type[MapOf]]
"""The form of each state of which each entry of a key is stored by itself."""


class KeyState(NamedTuple):
    """The state of one key under one name, in one partition."""

    state: StateName
    partition: int
    key: bytes


def whole_states(keyed: Iterable[tuple[bytes, bytes]], by_entry: ByEntry) -> Iterator[tuple[KeyState, bytes]]:
    """Yield each state of each key with its whole value, from what is stored by key, in the order of stored keys."""
    parts = ((*parse_keyed_key(stored), raw) for stored, raw in keyed)
    for (state, partition), rows in groupby(parts, key=lambda each: each[:2]):
        pairs = ((own, raw) for _, _, own, raw in rows)
        form = by_entry.get(state)
        wholes = pairs if form is None else ((key, form.gathered(entries)) for key, entries in by_key(pairs))
        yield from ((KeyState(state, partition, key), raw) for key, raw in wholes)


def stored_by_entry(serdes: Mapping[StateName, object]) -> ByEntry:
    """Return the form of each state that is stored by entry, from the serdes of a job's states."""
    return {state: type(serde) for state, serde in serdes.items() if isinstance(serde, ListOf | MapOf)}
