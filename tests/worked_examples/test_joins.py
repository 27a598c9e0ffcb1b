"""Joins of two streams within a time, and of a stream with a table: who meets whom, and who goes out alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worked_examples.join_example import JoinExample, as_of, streams, table, tables
from twopc import Json, UserCodeError
from twopc.state.forms import VersionOf


class Example(NamedTuple):
    name: str
    records: str
    told: list[str]
    how: Any = "inner"
    grace_ms: int = 0


STREAM_EXAMPLES = [
    Example("bounds", "b4 b5 a10 b15 b16", ["a10 -> (a10,b5)@10", "b15 -> (a10,b15)@15"]),
    Example("bounds, each as it comes", "a10 b4 b5 b15 b16", ["b5 -> (a10,b5)@10", "b15 -> (a10,b15)@15"]),
    Example("duplicates", "a1=x a1=y b2=z", ["b2=z -> (x,z)@2, (y,z)@2"]),
    Example("left, no partner", "a10 b15:j b16:j", ["b16:j -> (a10,-)@10"], "left"),
    Example("left, with partner", "a10 b12 b30", ["b12 -> (a10,b12)@12"], "left"),
    Example("outer", "a10 b30 a50:j", ["b30 -> (a10,-)@10", "a50:j -> (-,b30)@30"], "outer"),
    Example("out of order within grace", "a30:j a20 b22 a36:j", ["b22 -> (a20,b22)@22"], "left", 10),
    Example("who waits within grace goes alone behind it", "a30 a45:j a46:j", ["a46:j -> (a30,-)@30"], "left", 10),
    # It is told at once, as in Kafka Streams: a join has no stream of what is late, so it would be lost without a word.
    Example("late", "a30:j a20", ["a20 -> (a20,-)@20"], "left"),
    Example("late finds nothing that was told", "a10 b19:j b15", ["b19:j -> (a10,-)@10"], "left", 3),
    # It meets nothing, as in Kafka Streams: None is what the function sees where there is no partner.
    Example("value None on a side", "a10= b12 a13", ["a13 -> (a13,b12)@13"]),
]


@pytest.mark.parametrize("example", STREAM_EXAMPLES, ids=[example.name for example in STREAM_EXAMPLES])
def test_streams_within_a_time(example: Example) -> None:
    assert streams(example.how, example.grace_ms).put(example.records) == example.told


@pytest.mark.parametrize(
    ("how", "records", "told"),
    [
        ("inner", "b12", ["b12 -> (a10,b12)@12"]),
        ("left", "b12", ["b12 -> (a10,b12)@12"]),
        ("left", "b16:j", ["b16:j -> (a10,-)@10"]),
    ],
)
def test_a_restart_between_the_two_tells_of_it_once(how: Any, records: str, told: list[str]) -> None:
    before = streams(how)
    assert before.put("a10") == []
    after = streams(how, store=before.store)
    assert after.put(records) == told
    at_last = streams(how, store=before.store)
    assert at_last.put("b40:j b60:i") == []


TABLE_EXAMPLES = [
    Example("latest", "c1=Ann o2 c3=Bob o4", ["o2 -> (o2,Ann)@2", "o4 -> (o4,Bob)@4"]),
    Example("table later, left", "o2 c3=Ann", ["o2 -> (o2,-)@2"], "left"),
    Example("table later, inner", "o2 c3=Ann", []),
    Example("tombstone, left", "c1=Ann c2= o3", ["o3 -> (o3,-)@3"], "left"),
    Example("tombstone, inner", "c1=Ann c2= o3", []),
    Example("table out of order", "c5=New c3=Old o6", ["o6 -> (o6,Old)@6"]),
]


@pytest.mark.parametrize("example", TABLE_EXAMPLES, ids=[example.name for example in TABLE_EXAMPLES])
def test_a_stream_and_a_table(example: Example) -> None:
    assert table(example.how).put(example.records) == example.told


def test_a_table_is_there_behind_a_restart() -> None:
    before = table()
    before.put("c1=Ann")
    assert table(store=before.store).put("o2") == ["o2 -> (o2,Ann)@2"]


STEPS = "l1= r2= l3=A r4=a l5=B r6=b l7= r8= l9=C r10=c r11= l12= r13= r14=d l15=D"


TABLES_TOLD = {
    "inner": "4 Aa, 5 Ba, 6 Bb, 7 None, 10 Cc, 11 None, 15 Dd",
    "left": "3 A-, 4 Aa, 5 Ba, 6 Bb, 7 None, 9 C-, 10 Cc, 11 C-, 12 None, 15 Dd",
    "outer": "3 A-, 4 Aa, 5 Ba, 6 Bb, 7 -b, 8 None, 9 C-, 10 Cc, 11 C-, 12 None, 14 -d, 15 Dd",
}


@pytest.mark.parametrize(("how", "told"), TABLES_TOLD.items())
def test_two_tables(how: str, told: str) -> None:
    found = [line.split(" -> ")[1].split("@") for line in tables(how).put(STEPS)]
    assert ", ".join(f"{at} {value}" for value, at in found) == told


def test_a_tombstone_for_nothing_changes_no_join_of_tables() -> None:
    assert tables("inner").put("r1=d l2=") == []


class AsOf(NamedTuple):
    name: str
    records: str
    told: list[str]
    keep_ms: int = 50
    how: str = "left"
    grace_ms: int = 0


AS_OF_EXAMPLES = [
    AsOf("versions", "c1=v1 c5=v5 o3 o5 o7", ["o3 -> (o3,v1)@3", "o5 -> (o5,v5)@5", "o7 -> (o7,v5)@7"]),
    AsOf("valid at the horizon", "c0=v0 c100=v100 o60", ["o60 -> (o60,v0)@60"]),
    AsOf("tombstone is a version", "c1=v1 c4= o5 o3", ["o5 -> (o5,-)@5", "o3 -> (o3,v1)@3"], 10),
    AsOf("of one time the last counts", "c1=v1 c1=v2 o1", ["o1 -> (o1,v2)@1"]),
    AsOf("before the first version", "c5=v5 o4", ["o4 -> (o4,-)@4"]),
    AsOf("inner, before the first version", "c5=v5 o4 o5", ["o5 -> (o5,v5)@5"], how="inner"),
    AsOf("a version of before that comes later", "c5=v5 c3=v3 o4 o6", ["o4 -> (o4,v3)@4", "o6 -> (o6,v5)@6"]),
    AsOf("grace", "o2 c1=v1 o5", ["o5 -> (o2,v1)@2"], grace_ms=3),
    AsOf("grace, a version of its own time, not of a later one", "o2 c2=v2 c3=v3 o5", ["o5 -> (o2,v2)@2"], grace_ms=3),
    AsOf("grace, in the order of their times", "o3 o2 c1=v1 o6", ["o6 -> (o2,v1)@2, (o3,v1)@3"], grace_ms=3),
    AsOf("grace, two of one time", "o2=x o2=y c1=v1 o5", ["o5 -> (x,v1)@2, (y,v1)@2"], grace_ms=3),
    AsOf("grace, later than it", "c1=v1 o9:j o6 o5:j", ["o6 -> (o6,v1)@6", "o5:j -> (o5,-)@5"], grace_ms=3),
    AsOf("grace, time that goes on far", "c1=v1 o2 c3=v3 c90=v9", ["c90=v9 -> (o2,v1)@2"], keep_ms=3, grace_ms=3),
    AsOf("grace, inner", "o2 o9:j c1=v1 o9", [], how="inner", grace_ms=3),
    AsOf("grace, without a value", "o2= c1=v1 o5", ["o5 -> (-,v1)@2"], grace_ms=3),
    AsOf("a record does not wait", "o2 c1=v1 o3", ["o2 -> (o2,-)@2", "o3 -> (o3,v1)@3"]),
]


@pytest.mark.parametrize("example", AS_OF_EXAMPLES, ids=[example.name for example in AS_OF_EXAMPLES])
def test_a_stream_and_a_table_as_of_its_time(example: AsOf) -> None:
    assert as_of(example.keep_ms, example.how, example.grace_ms).put(example.records) == example.told


def test_what_is_further_behind_than_versions_are_kept_goes_wrong() -> None:
    example = as_of(50)
    example.put("c0=v0 c100=v100")
    with pytest.raises(UserCodeError, match=r"60 ms behind the stream time, and versions .* are kept for 50 ms"):
        example.put("o40")


def test_versions_are_there_behind_a_restart() -> None:
    before = as_of(50)
    before.put("c1=v1 c5=v5")
    assert as_of(50, store=before.store).put("o3") == ["o3 -> (o3,v1)@3"]


@pytest.mark.parametrize("grace_ms", [0, 3, 20])
def test_what_waits_is_there_behind_a_restart_and_is_told_when_it_was_to_be(grace_ms: int) -> None:
    before = as_of(50, grace_ms=3)
    before.put("o2")
    assert as_of(50, grace_ms=grace_ms, store=before.store).put("c1=v1 c5:j=x") == ["c5:j=x -> (o2,v1)@2"]


@pytest.mark.parametrize(("records", "kept"), [("c0=a c10=b c70:j=z", ["b"]), ("c0=a c10= c70:j=z", [])])
def test_what_no_record_can_meet_any_more_is_not_kept(records: str, kept: list[str]) -> None:
    example = as_of(50)
    example.put(records)
    form = VersionOf(Json())
    of_key = [
        data for (state, _, key), data in example.store.states.items() if state.name == "versions" and b"k" in key
    ]
    assert [version.value for version in map(form.deserialize, of_key) if version is not None] == kept


def test_what_waited_for_its_grace_is_gone_once_it_is_told() -> None:
    example = as_of(50, grace_ms=3)
    example.put("o2 o3:j")
    assert _waiting(example) == 2
    example.put("o6")
    assert _waiting(example) == 1


def _waiting(example: JoinExample) -> int:
    return sum(state.name == "waiting" for state, _, _ in example.store.states)


PARTS = st.lists(st.tuples(st.sampled_from("oc"), st.integers(0, 60), st.sampled_from(["=x", "=y", "="])), max_size=30)


@given(PARTS, st.integers(0, 30), st.sampled_from([0, 1, 5, 30]))
def test_each_record_meets_the_last_version_of_its_time_that_has_come_until_its_grace_is_over(
    parts: list[tuple[str, int, str]], keep_ms: int, grace_ms: int
) -> None:
    grace_ms = min(keep_ms, grace_ms)
    versions: list[tuple[int, int, str]] = []
    waiting: list[tuple[int, int]] = []
    expected, now = [], 0
    records = [f"{name}{at}{'' if name == 'o' else value}" for name, at, value in parts]
    for number, (name, at, value) in enumerate(parts):
        told: list[str] = []
        now = max(now, at)

        def tell(at: int, versions: list[tuple[int, int, str]], told: list[str]) -> None:
            found = max((version for version in versions if version[0] <= at), default=(0, 0, ""))[2]
            told.append(f"(o{at},{found or '-'})@{at}")

        for since, before in sorted(each for each in waiting if each[0] + grace_ms <= now):
            tell(since, known_at(versions, since + grace_ms - keep_ms), told)
            waiting.remove((since, before))
        versions = known_at(versions, now - keep_ms)
        if name == "c":
            versions = known_at([*versions, (at, number, value[1:])], now - keep_ms)
        elif at + grace_ms > now:
            waiting.append((at, number))
        elif at >= now - keep_ms:
            tell(at, versions, told)
        if told:
            expected.append(f"{records[number]} -> {', '.join(told)}")
    assert as_of(keep_ms, grace_ms=grace_ms, on_error=lambda source, error: []).put(" ".join(records)) == expected


def known_at(versions: list[tuple[int, int, str]], horizon: int) -> list[tuple[int, int, str]]:
    """Leave out a row that was deleted by this time: nothing is kept of it, so an older version that comes is there."""
    past = [version for version in versions if version[0] <= horizon]
    is_deleted = past and not max(past)[2]
    return [version for version in versions if version not in past] if is_deleted else versions


def test_of_a_row_that_was_deleted_longer_ago_than_versions_are_kept_an_older_version_that_comes_is_there() -> None:
    assert as_of(5).put("c1= c7:j=z c0=x o7") == ["o7 -> (o7,x)@7"]
    assert as_of(5).put("c1= c0=x o5") == ["o5 -> (o5,-)@5"]
