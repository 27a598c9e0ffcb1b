"""The compiled loops of keyed operators do what those in Python do, whatever functions, states and keys come."""

from __future__ import annotations

import sys
import weakref
from collections import namedtuple
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compiled_parts import compiled_part
from twopc import compiled as finding
from twopc.compiled import LOOPS
from twopc.operators.loops import InPython, Loops, loops
from twopc.state.key_form import key_bytes
from twopc.variables import NATIVE

_Pair = namedtuple("_Pair", "state value")

KEYS = [b"", b"a", b"b", b"long-" * 8]
STATES = (
    st.none() | st.integers() | st.binary(max_size=3) | st.booleans() | st.sampled_from([2**63 - 1, -(2**63), 2**64])
)
HELD = st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([b"\x00", b"\x01", b"\x02", b"12"])
RESULTS = (
    st.tuples(STATES, st.integers())
    | st.sampled_from([(), (1,), (1, 2, 3), [1, 2], None, 5, _Pair(7, "seven"), ValueError("no"), StopIteration()])
    | st.just("as it was")
    | st.sampled_from([(1, "one"), (2**63 - 1, "greatest"), (2**63, "too great"), (-(2**63) - 1, "too small")])
)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Loops:
    """Return the compiled loops; skip where they were not built."""
    compiled_part(LOOPS)
    monkeypatch.delenv(NATIVE, raising=False)
    if isinstance(made := loops(), InPython):
        pytest.skip("what was compiled is of other sources")
    return made


def decode(held: bytes) -> Any:
    if held == b"\x00":
        raise ValueError("it can't be decoded")
    return held == b"\x01" or held.hex()


def encode(state: Any) -> bytes | None:
    if state is True:
        raise TypeError("it can't be encoded")
    return None if state is None else state if isinstance(state, bytes) else repr(state).encode()


def pair_of(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"no pair: {result!r}")
    new, output = result
    return new, output


def applied(way: Loops, keys: list[bytes], results: list[Any], held: dict[bytes, Any], holds_ints: bool) -> Any:
    """Return all that comes of a run: what the function was called with, outputs, states, what changed, the error."""
    calls: list[Any] = []
    states, outputs = dict(held), ["before"]
    dirty: dict[bytes, Any] = {}

    def function(state: Any, value: Any) -> Any:
        calls.append((type(state), state, value))
        if isinstance(value, Exception):
            raise value
        return (state, "same") if value == "as it was" else value

    rest, error = iter(results), None
    try:
        way.apply(function, decode, encode, pair_of, holds_ints, keys, rest, states, dirty, outputs)
    except Exception as raised:  # noqa: BLE001 - whatever it is, both must raise it
        error = (type(raised), str(raised))
    kinds = {key: type(state) for key, state in states.items()}
    return calls, states, kinds, dirty, outputs, error, list(rest)


@given(
    st.lists(st.sampled_from(KEYS), max_size=8),
    st.lists(RESULTS, max_size=8),
    st.dictionaries(st.sampled_from(KEYS), HELD),
    st.booleans(),
)
def test_both_loops_leave_the_same_behind(
    keys: list[bytes], results: list[Any], held: dict[bytes, Any], holds_ints: bool
) -> None:
    compiled = compiled_part(LOOPS)
    args = keys, results, held, holds_ints
    assert applied(compiled, *args) == applied(InPython(), *args)


@given(st.lists(st.binary(max_size=2) | st.sampled_from([b"\xff", b"\xff\xff", b"\xfe"]) | st.text() | st.none()))
def test_both_loops_say_alike_whether_keys_are_their_own_forms(keys: list[Any]) -> None:
    compiled = compiled_part(LOOPS)
    are_own = bool(keys) and all(type(key) is bytes and key_bytes(key) == key for key in keys)
    assert compiled.are_forms(keys) is InPython().are_forms(keys) is are_own


@given(st.lists(st.integers(0, 2) | st.sampled_from([2**40, 2**70])))
def test_both_loops_part_a_batch_at_the_same_places(numbers: list[int]) -> None:
    compiled = compiled_part(LOOPS)
    assert compiled.run_ends(numbers) == InPython().run_ends(numbers)


def test_a_loop_that_is_cut_off_takes_no_value_that_it_does_not_give_to_the_function(compiled: Loops) -> None:
    for way in (compiled, InPython()):
        outputs: list[Any] = []
        rest = iter([1, 2, 3])
        way.apply(lambda state, value: (state, value), decode, encode, pair_of, True, [b"a"], rest, {}, {}, outputs)
        assert (outputs, list(rest)) == ([1], [2, 3])


class Held:
    """An object that somebody may still have."""


@pytest.mark.parametrize(
    "how", ["kept", "kept as an integer", "raises", "no pair", "can't be decoded", "can't be encoded"]
)
def test_nothing_of_a_call_is_held_on_to(compiled: Loops, how: str) -> None:
    alive: list[weakref.ref[Held]] = []

    def held() -> Held:
        alive.append(weakref.ref(made := Held()))
        return made

    def function(state: Any, value: Any) -> Any:
        if how == "raises":
            raise ValueError(held())
        new = 2**40 + len(alive) if how == "kept as an integer" else [held()]
        return [held()] if how == "no pair" else (new, held())

    def coded(state: Any) -> Any:
        if how in ("can't be decoded", "can't be encoded"):
            raise ValueError(held())
        return held()

    key, large, other = bytes([1, 2, 3] * 9), 2**50, bytes(99)
    states = {key: other if how == "can't be decoded" else large}
    before = [sys.getrefcount(each) for each in (key, large, other)]
    with suppress(ValueError, TypeError):
        compiled.apply(function, coded, coded, pair_of, how != "kept", [key], iter([held()]), states, {}, [])
    states.clear()
    assert [each() for each in alive] == [None] * len(alive)
    assert [sys.getrefcount(each) for each in (key, large, other)] == [
        before[0] - 1,
        before[1] - (how != "can't be decoded"),
        before[2] - (how == "can't be decoded"),
    ]


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (lambda way: way.run_ends((1, 2)), "list"),
        (lambda way: way.are_forms(None), "list"),
        (lambda way: way.apply(None, None, None, None, True, [], [], {}, {}, []), "iterator"),
        (lambda way: way.apply(None, None, None, None, True, (), iter([]), {}, {}, []), "list"),
    ],
)
def test_what_is_of_another_type_is_refused(compiled: Any, call: Any, wrong: str) -> None:
    with pytest.raises(TypeError, match=wrong):
        call(compiled)


def test_the_loops_in_python_are_taken_where_what_is_compiled_is_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, "0")
    assert isinstance(loops(), InPython)


def test_the_loops_in_python_are_taken_where_nothing_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NATIVE, raising=False)
    monkeypatch.setitem(sys.modules, "twopc.operators._loops", None)
    monkeypatch.setattr(finding, "_found", finding._found.__wrapped__)
    assert isinstance(loops(), InPython)


def test_a_state_that_is_equal_to_what_was_stored_and_of_another_type_has_changed(compiled: Loops) -> None:
    for way in (compiled, InPython()):
        states: dict[bytes, Any] = {b"a": b"\x01"}
        dirty: dict[bytes, Any] = {}
        way.apply(
            lambda state, value: (int(state), value),
            decode,
            encode,
            pair_of,
            True,
            [b"a"],
            iter([0]),
            states,
            dirty,
            [],
        )
        assert dirty == {b"a": 1}
