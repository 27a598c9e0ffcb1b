"""Lists and maps by key, which behave as Python's own through batches and restarts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.kit import Chain
from tests.operators.test_process import rows, values
from twopc import Context, Json, ListState, MapState, Processor, Record, UserCodeError
from twopc.operators import Process
from twopc.state.layout import StateName
from twopc.testing.rows import batch_of
from twopc.testing.states import DictStore

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
            return list(maps)
        case _:
            maps.clear()
    return None


element = st.integers(0, 9) | st.text(max_size=3)
name = st.sampled_from(["", "a", "\u00e9"])
calls = st.lists(
    st.tuples(
        st.sampled_from([b"k", b"l"]),
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


@given(calls=calls, size=st.integers(1, 30))
def test_lists_and_maps_are_what_the_calls_make_of_them(calls: list[tuple[bytes, Any]], size: int) -> None:
    store = DictStore()
    lists: dict[bytes, list[Any]] = {b"k": [], b"l": []}
    maps: dict[bytes, dict[str, Any]] = {b"k": {}, b"l": {}}
    for start in range(0, len(calls), size):
        part = calls[start : start + size]
        chain = Chain([Process(Both(), "op")], store)
        out = chain.process(batch_of(rows(*((key, call, None) for key, call in part)))).values
        chain.write_back()
        for (key, (of, call, *arguments)), shown in zip(part, out, strict=True):
            expected = naive(of, call, arguments, lists[key], maps[key])
            assert shown == [expected, lists[key], list(maps[key].items()), []]
    kept = {(LIST, 0, key) for key, held in lists.items() if held} | {
        (MAP, 0, key) for key, held in maps.items() if held
    }
    assert store.states.keys() == kept, "what is empty is not stored"


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


@pytest.mark.parametrize(("state", "said"), [(LIST, "is no list"), (MAP, "is no map")])
def test_what_is_stored_and_no_list_or_map_is_named(state: StateName, said: str) -> None:
    store = DictStore({(state, 0, b"a"): b"\0\0\0\5abc"})
    with pytest.raises(UserCodeError, match=f"the stored state '{state.name}' {said}"):
        values(Both(), rows((b"a", ("map", "keys"), None)), store)
