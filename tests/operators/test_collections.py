"""Lists and maps by key, which behave as Python's own through batches and restarts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Chain
from tests.operators.test_process import rows, values
from twopc import Context, Json, ListState, MapState, Processor, Record, UserCodeError
from twopc.operators import Process, entry_index, write_back_cache
from twopc.operators.entry_index import KNOWN_MAX
from twopc.operators.write_back_cache import CACHE_BYTES_MAX, DIRTY_MAX
from twopc.state.entry_keys import by_key
from twopc.state.layout import StateName
from twopc.testing.rows import batch_of
from twopc.testing.states import Address, DictStore

LIST, MAP = StateName("op", "list"), StateName("op", "map")


class Both(Processor):
    """Does what its records say, and shows both afterwards."""

    list = ListState(Json())
    map = MapState(Json())
    by_number = MapState(Json(), key=Json(), ttl="1s")

    def process(self, record: Record, context: Context) -> Record:
        of, call, *arguments = record.value
        out = getattr(getattr(self, of), call)(*arguments)
        return record.replace(value=[out, self.list.get(), self.map.items(), self.by_number.items()])


def naive(of: str, call: str, arguments: list[Any], lists: list[Any], maps: dict[str, Any]) -> Any:
    match of, call:
        case "list", "add":
            lists.append(*arguments)
        case "list", "extend":
            lists.extend(*arguments)
        case "list", "set":
            lists[:] = arguments[0]
        case "list", "clear":
            lists.clear()
        case "map", "put":
            maps[arguments[0]] = arguments[1]
        case "map", "remove":
            maps.pop(arguments[0], None)
        case "map", "get":
            return maps.get(*arguments)
        case "map", "contains":
            return arguments[0] in maps
        case "map", "keys":
            return sorted(maps)
        case _:
            maps.clear()
    return None


element = st.integers(0, 9) | st.text(max_size=3)
name = st.sampled_from(["", "a", "\u00e9"])
calls = st.lists(
    st.tuples(
        st.sampled_from([b"k", b"k\0"]),
        st.one_of(
            st.tuples(st.just("list"), st.just("add"), element),
            st.tuples(st.just("list"), st.sampled_from(["extend", "set"]), st.lists(element, max_size=3)),
            st.tuples(st.sampled_from(["list", "map"]), st.just("clear")),
            st.tuples(st.just("map"), st.just("put"), name, element),
            st.tuples(st.just("map"), st.sampled_from(["remove", "get", "contains"]), name),
            st.tuples(st.just("map"), st.just("keys")),
        ),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize(
    ("memory", "known", "dirty"),
    [(CACHE_BYTES_MAX, KNOWN_MAX, DIRTY_MAX), (0, 0, 0), (CACHE_BYTES_MAX, 0, 2), (CACHE_BYTES_MAX, 0, DIRTY_MAX)],
)
@given(calls=calls, size=st.integers(1, 30))
def test_lists_and_maps_are_what_the_calls_make_of_them(
    calls: list[tuple[bytes, Any]], size: int, restarts: bool, memory: int, known: int, dirty: int
) -> None:
    store = DictStore()
    lists: dict[bytes, list[Any]] = {b"k": [], b"k\0": []}
    maps: dict[bytes, dict[str, Any]] = {b"k": {}, b"k\0": {}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_back_cache, "CACHE_BYTES_MAX", memory)
        patch.setattr(write_back_cache, "DIRTY_MAX", dirty)
        patch.setattr(entry_index, "KNOWN_MAX", known)
        chain = Chain([Process(Both(), "op")], store)
        for start in range(0, len(calls), size):
            part = calls[start : start + size]
            out = chain.process(batch_of(rows(*((key, call, None) for key, call in part)))).values
            if restarts:
                chain.write_back()
                chain = Chain([Process(Both(), "op")], store)
            for (key, (of, call, *arguments)), shown in zip(part, out, strict=True):
                expected = naive(of, call, arguments, lists[key], maps[key])
                assert shown == [expected, lists[key], sorted(maps[key].items()), []]
        chain.write_back()
    kept = [(LIST, key) for key, held in lists.items() for _ in held]
    kept += [(MAP, key) for key, held in maps.items() for _ in held]
    stored = sorted(store.states.items())
    names = [(state, key) for state in (LIST, MAP) for key, entries in by_key(of_state(stored, state)) for _ in entries]
    assert names == sorted(kept), "what is empty is not stored"


def of_state(stored: list[tuple[Address, bytes]], name: StateName) -> list[tuple[bytes, bytes]]:
    return [(key, value) for (state, _, key), value in stored if state == name]


class Touching(Processor):
    """Adds to a list and a map, and looks up one entry."""

    list = ListState(Json())
    map = MapState(Json(), ttl="1h")

    def process(self, record: Record, context: Context) -> Record:
        self.list.add(record.value)
        self.map.put(str(record.value), record.value)
        return record.replace(value=[self.map.get("7"), self.map.contains("none")])


def test_what_a_call_costs_does_not_grow_with_the_list_and_the_map_that_it_touches() -> None:
    store = DictStore()
    values(Touching(), rows(*((b"a", number, number) for number in range(1_000))), store)
    store.reads.clear()
    store.writes.clear()
    assert values(Touching(), rows((b"a", 1_000, 1_000)), store) == [[7, False]]
    assert sorted(state.name for state, _, key in store.reads if key) == ["map"] * 3
    assert len(store.writes) <= 6


def test_an_entry_of_a_map_lives_from_when_it_was_put_and_an_element_from_when_it_was_added() -> None:
    store = DictStore()
    shown = values(
        Living(), rows((b"a", 1, 0), (b"a", 2, 400), (b"a", 1, 800), (b"a", 3, 1_400), (b"a", 4, 1_800)), store
    )
    assert shown == [
        [[1], [1]],
        [[1, 2], [1, 2]],
        [[1, 2], [1, 2, 1]],
        [[1, 3], [1, 3]],
        [[3, 4], [3, 4]],
    ]


class Living(Processor):
    """Puts and adds its records, and shows what is there."""

    map = MapState(Json(), key=Json(), ttl="1s")
    list = ListState(Json(), ttl="1s")

    def process(self, record: Record, context: Context) -> Record:
        self.map.put(record.value, 0)
        self.list.add(record.value)
        return record.replace(value=[self.map.keys(), self.list.get()])


def test_entries_that_have_outlived_their_time_leave_nothing_however_many_a_record_writes() -> None:
    store = DictStore()
    values(Many(), rows(*((b"a", at, at * 2_000) for at in range(30))), store)
    assert sum(state.name == "map" for state, _, _ in store.states) <= 2 * Many.PUT
    assert sum(state.name == "$expiries" for state, _, _ in store.states) <= 2 * Many.PUT


class Many(Processor):
    """Puts more entries than a record deletes at most."""

    PUT = 40
    map = MapState(Json(), ttl="1s")

    def process(self, record: Record, context: Context) -> None:
        for number in range(self.PUT):
            self.map.put(f"{record.value} {number}", 1)


def test_a_map_may_have_other_keys_than_text_and_a_time_to_live() -> None:
    put = ("by_number", "put", 1, "one")
    shown = [
        value[3] for value in values(Both(), rows((b"a", put, 5), (b"a", ("map", "keys"), 1_004), (b"a", put, 1_005)))
    ]
    assert shown == [[(1, "one")], [(1, "one")], [(1, "one")]]
    assert values(Both(), rows((b"a", put, 5), (b"a", ("map", "keys"), 1_005)))[-1][3] == []


@pytest.mark.parametrize("call", [("list", "add", None), ("map", "put", "a", None), ("map", "put", None, 1)])
def test_nothing_can_not_be_in_a_list_or_map(call: Any) -> None:
    with pytest.raises(UserCodeError, match=r"in\[0\]@0: .*None can't be in state '(list|map)'"):
        values(Both(), rows((b"a", call, None)))
