"""Whatever is stored, or sent as JSON, comes back as it was, or is refused by the name of what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rpc.strategies import committables, metadata, positions, snapshots
from twopc.config import RunSettings
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.canonical import canonical
from twopc.protocol.codec import Mismatch, Newer, from_json, to_json
from twopc.protocol.envelope import encode_fact
from twopc.protocol.facts import CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId
from twopc.protocol.ledger_facts import ENTRY_TYPES
from twopc.protocol.ledger_place import LedgerPlace
from twopc.protocol.ledger_state import LedgerState, decode_entry, encode_entry
from twopc.protocol.manifest import Manifest
from twopc.protocol.planned_starts import StartsPlanned
from twopc.runtime.spec import SubtaskSpec
from twopc.source import Split
from twopc.transaction_group import TransactionGroup

numbers = st.integers(0, 2**63)
text = st.text(st.characters(codec="utf-8"), max_size=10)
settings = st.builds(CheckpointSettings, st.integers(1, 2**31), st.integers(1, 2**31))
st.register_type_strategy(CheckpointSettings, settings)
planned = st.builds(StartsPlanned, attempt=numbers, mode=text, starts=st.lists(positions, max_size=3).map(tuple))
entries = st.one_of(
    planned, *(st.from_type(each) for each in ENTRY_TYPES if each not in (StartsPlanned, CheckpointMetadata))
)
specs = st.builds(
    SubtaskSpec,
    settings=st.builds(RunSettings, checkpoint_interval_ms=st.integers(1, 1_000)),
    splits=st.lists(st.builds(Split, text, numbers, numbers | text, st.none() | numbers, text), max_size=2).map(tuple),
    snapshots=st.lists(snapshots, max_size=2).map(tuple),
    groups=st.lists(st.from_type(TransactionGroup), max_size=2).map(tuple),
)
values = st.one_of(entries, specs, metadata, snapshots, committables, positions, settings)
PLACE = LedgerPlace("orders", 1, "", "me")


@given(value=values)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert from_json(type(value), json.loads(canonical(to_json(value)))) == value


@given(snapshot=snapshots)
def test_what_a_part_is_stored_under_comes_back_too(snapshot: SubtaskSnapshot) -> None:
    again = from_json(SubtaskSnapshot, json.loads(canonical(to_json(snapshot))))
    assert [held.source for held in again.positions] == [held.source for held in snapshot.positions]
    assert [item.group for item in again.committables] == [item.group for item in snapshot.committables]


@given(value=values, data=st.data())
def test_a_missing_field_has_its_default_or_is_named_and_what_is_unknown_is_newer(
    value: Any, data: st.DataObject
) -> None:
    body = json.loads(canonical(to_json(value)))
    if isinstance(body, list):
        with pytest.raises(Mismatch, match=f"not a list of {len(body)}"):
            from_json(type(value), body[1:])
        return
    name = data.draw(st.sampled_from(sorted(body)))
    without = {each: value for each, value in body.items() if each != name}
    if name in (defaults := defaults_of(type(value))):
        assert getattr(from_json(type(value), without), name) == defaults[name]
    else:
        with pytest.raises(Mismatch, match=f"lacks {name}"):
            from_json(type(value), without)
    with pytest.raises(Newer, match="has colour, which is unknown"):
        from_json(type(value), body | {"colour": 1})


def defaults_of(kind: Any) -> dict[str, Any]:
    made = {each.name: each.default_factory() for each in fields(kind) if each.default_factory is not MISSING}
    return made | {each.name: each.default for each in fields(kind) if each.default is not MISSING}


@given(entry=entries, data=st.data())
def test_a_stored_entry_with_any_byte_flipped_is_refused_by_its_name(entry: Any, data: st.DataObject) -> None:
    stored = bytearray(encode_entry(entry, PLACE))
    stored[data.draw(st.integers(0, len(stored) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CheckpointCorrupted, match=r"here\.json"):
        decode_entry(bytes(stored), "here.json")


def _places(body: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    return [at] * bool(at) + [place for name, each in inner for place in _places(each, (*at, name))]


OTHERS: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats() | text | st.just([])


@given(value=values, data=st.data(), other=OTHERS)
def test_another_value_anywhere_is_read_or_refused(value: Any, data: st.DataObject, other: Any) -> None:
    body = json.loads(canonical(to_json(value)))
    *way, last = data.draw(st.sampled_from(_places(body)))
    holder = body
    for name in way:
        holder = holder[name]
    holder[last] = other
    with suppress(Mismatch):
        assert type(from_json(type(value), body)) is type(value)


class Size(Enum):
    SMALL = "small"


class Pair(NamedTuple):
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Circle:
    radius: float


@dataclass(frozen=True, slots=True)
class LargeSquare:
    sides: tuple[int, ...]
    pair: Pair


@dataclass(frozen=True, slots=True)
class Told:
    TAG: ClassVar[str] = "event"

    at: int


@dataclass(frozen=True, slots=True)
class Over:
    TAG: ClassVar[str] = "event"

    reason: str | None


@pytest.mark.parametrize(
    ("kind", "value", "body"),
    [
        (Circle, Circle(1.5), {"radius": 1.5}),
        (Circle | LargeSquare, Circle(1.5), {"type": "circle", "radius": 1.5}),
        (
            Circle | LargeSquare | None,
            LargeSquare((1, 2), Pair("a", 1)),
            {"type": "large-square", "sides": [1, 2], "pair": ["a", 1]},
        ),
        (Circle | LargeSquare | None, None, None),
        (Told | Over, Over(None), {"event": "over", "reason": None}),
        (Mapping[Size, Mapping[bytes, bytes | None]], {Size.SMALL: {b"\x00": None}}, {"small": {"AA==": None}}),
        (frozenset[str], frozenset(("b", "a")), ["a", "b"]),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (CheckpointId, CheckpointId(3), 3),
    ],
)
def test_the_form_follows_from_the_type(kind: Any, value: Any, body: Any) -> None:
    assert json.loads(json.dumps(to_json(value, kind))) == body
    assert from_json(kind, body) == value


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        (Circle, {"radius": "wide"}, "radius is 'wide', not a number"),
        (Circle, {"radius": True}, "radius is True, not a number"),
        (Circle, {"radius": 10**400}, "not a number of that size"),
        (LargeSquare, {"sides": [1, 2.0], "pair": ["a", 1]}, "sides[1] is 2.0, not a whole number"),
        (LargeSquare, {"sides": [1], "pair": ["a", "b"]}, "pair[1] is 'b', not a whole number"),
        (Circle | LargeSquare, {"radius": 1.0}, "has None as its type, not one of circle, large-square"),
        (Circle | LargeSquare, {"type": "circle", "radius": None}, "radius is None, not a number"),
        (Mapping[Size, int], {"huge": 1}, "huge is 'huge', not one of small"),
        (tuple[Circle, ...], [{"radius": 1.0}, []], "[1] is a list of 0, not an object"),
        (Mapping[str, bytes], {"a": "?"}, "a is '?', not bytes in base64"),
        (frozenset[str], "abc", "is 'abc', not a list"),
    ],
)
def test_a_mismatch_says_where_it_is_and_what_belongs_there(kind: Any, body: Any, why: str) -> None:
    with pytest.raises(Mismatch) as refused:
        from_json(kind, body)
    assert why in str(refused.value)


def test_what_a_type_refuses_when_it_is_made_is_refused_when_it_is_read() -> None:
    body = to_json(CheckpointSettings(1, 1)) | {"interval_ms": 0}
    with pytest.raises(ConfigurationError):
        CheckpointSettings(0, 1)
    with pytest.raises(Mismatch, match="checkpoint_interval_ms"):
        from_json(CheckpointSettings, body)


def test_a_field_of_the_wrong_type_deep_in_a_stored_file_is_named_with_the_file() -> None:
    manifest = json.loads(canonical({"files": [["files/1-0-ab-x.sst", "large", "00"]], "key_count": 1}))
    with pytest.raises(CheckpointCorrupted, match=r"here\.json .*files\[0\]\.size_bytes is 'large'"):
        Manifest.decode(encode_fact("state-manifest", manifest), "here.json")


def test_a_summary_comes_back_as_it_was() -> None:
    state = LedgerState()
    assert decode_entry(encode_entry(state, PLACE), "here.json") == (PLACE, state)
