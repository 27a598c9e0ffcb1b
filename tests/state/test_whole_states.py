"""Whole states of keys, put together from what is stored by entry."""

from __future__ import annotations

from twopc.serde import Long, String
from twopc.state.entry_keys import entries_prefix, number_key
from twopc.state.forms import ListOf, MapOf
from twopc.state.layout import StateName, state_prefix
from twopc.state.whole_states import KeyState, stored_by_entry, whole_states

PLAIN, LIST, MAP = (StateName("seen", name) for name in ("count", "last", "by-name"))
SERDES = {PLAIN: Long(), LIST: ListOf(String()), MAP: MapOf(String(), Long())}


def test_entries_of_a_key_are_one_value_and_all_else_is_as_it_is_stored() -> None:
    stored = {
        state_prefix(PLAIN, 1) + b"a": b"1",
        **{state_prefix(LIST, 1) + entries_prefix(b"a") + number_key(n): b"x%d" % n for n in (300, 7)},
        state_prefix(LIST, 1) + entries_prefix(b"\0b") + number_key(1): b"y",
        state_prefix(LIST, 2) + entries_prefix(b"a") + number_key(1): b"z",
        state_prefix(MAP, 1) + entries_prefix(b"a") + b"k": b"5",
    }
    found = dict(whole_states(sorted(stored.items()), stored_by_entry(SERDES)))
    assert found[KeyState(PLAIN, 1, b"a")] == b"1"
    lists = {at[1:]: SERDES[LIST].deserialize(raw) for at, raw in found.items() if at.state == LIST}
    assert lists == {(1, b"a"): ["x7", "x300"], (1, b"\0b"): ["y"], (2, b"a"): ["z"]}
    assert found.keys() == {KeyState(PLAIN, 1, b"a"), KeyState(MAP, 1, b"a"), *(KeyState(LIST, *at) for at in lists)}
