"""Windows: which records each has, when it is told, what is late."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.worked_examples.window_example import WindowExample
from twopc import ConfigurationError, Hopping, Session, Sliding, Tumbling
from twopc.windows import Windows

TUMBLING = Tumbling("10ms")
HOPPING = Hopping("10ms", every="5ms")
SLIDING = Sliding("10ms")
SESSION = Session(gap="5ms")

FINAL = ("final",)
WITH_LATE = ("final", "late")
CURRENT = ("current",)


class Example(NamedTuple):
    name: str
    windows: Windows
    records: str
    told: list[str]
    grace_ms: int = 0
    outputs: tuple[str, ...] = FINAL


TUMBLING_EXAMPLES = [
    Example("bounds", TUMBLING, "0 9 10", ["10 -> [0,10)=2@9"]),
    Example("closes at the edge of grace", TUMBLING, "3 14 15", ["15 -> [0,10)=1@9"], 5),
    Example("out of order within grace", TUMBLING, "3 12 4 15", ["15 -> [0,10)=2@9"], 5, WITH_LATE),
    Example("late", TUMBLING, "3 15 9", ["15 -> [0,10)=1@9", "9 -> late @9"], 5, WITH_LATE),
    Example(
        "a late record moves nothing", TUMBLING, "20 3 29 30", ["3 -> late @3", "30 -> [20,30)=2@29"], 0, WITH_LATE
    ),
    Example(
        "order of results, no empty windows",
        TUMBLING,
        "1:b 2:a 11:b 35:a",
        ["11:b -> a[0,10)=1@9, b[0,10)=1@9", "35:a -> b[10,20)=1@19"],
    ),
    Example("before 1970", TUMBLING, "-1 0", ["0 -> [-10,0)=1@-1"]),
    Example("the end of the records keeps windows", TUMBLING, "1 12", ["12 -> [0,10)=1@9"]),
]

HOPPING_EXAMPLES = [
    Example("bounds", HOPPING, "7 10 20", ["10 -> [0,10)=1@9", "20 -> [5,15)=2@14, [10,20)=1@19"]),
    Example("windows that begin before zero", HOPPING, "3 20", ["20 -> [-5,5)=1@4, [0,10)=1@9"]),
    Example(
        "taken by one, missed by another",
        HOPPING,
        "12 16 13 20",
        ["16 -> [5,15)=1@14", "20 -> [10,20)=3@19"],
        0,
        WITH_LATE,
    ),
    Example("late for all", HOPPING, "30 5", ["5 -> late @5"], 0, WITH_LATE),
]

# Those of KIP-450, as Kafka Streams has them: some begin behind a record, and have what is too late for its own window.
SLIDING_EXAMPLES = [
    Example(
        "in order",
        SLIDING,
        "0 10 11 30",
        ["10 -> [-10,0]=1@0", "11 -> [0,10]=2@10", "30 -> [1,11]=2@11, [11,21]=1@21"],
    ),
    Example("two at one time", SLIDING, "5 5 6", ["6 -> [-5,5]=2@5"]),
    Example("out of order within grace", SLIDING, "10 12 9 20", ["20 -> [-1,9]=1@9, [0,10]=2@10, [2,12]=3@12"], 5),
    Example("its own window is over", SLIDING, "10 12 11 13", ["12 -> [0,10]=1@10", "13 -> [2,12]=3@12"], 0, WITH_LATE),
]

SESSION_EXAMPLES = [
    Example("the gap is in", SESSION, "0 5 11 17", ["11 -> [0,5]=2@5", "17 -> [11,11]=1@11"]),
    # Of those that are over at one time the order is that of their keys.
    Example("not closed at equality", SESSION, "0 5:j 5 11:j", ["11:j -> j[5,5]=1@5, [0,5]=2@5"]),
    Example("bridge", SESSION, "0 2 9 10 6 116", ["116 -> [0,10]=5@10"], 100),
    # Nobody takes back what was told of a session that is part of another now.
    Example(
        "bridge, current",
        SESSION,
        "0 2 9 10 6",
        ["0 -> [0,0]=1@0", "2 -> [0,2]=2@2", "9 -> [9,9]=1@9", "10 -> [9,10]=2@10", "6 -> [0,10]=5@6"],
        100,
        CURRENT,
    ),
    Example("moved to the front, current", SESSION, "10 7", ["10 -> [10,10]=1@10", "7 -> [7,10]=2@7"], 100, CURRENT),
    Example("late by itself", SESSION, "0 11:j 1", ["11:j -> [0,0]=1@0", "1 -> late @1"], 0, WITH_LATE),
    Example(
        "a session that lives takes what is late", SESSION, "0 4 8 12 3 18:j", ["18:j -> [0,12]=5@12"], 0, WITH_LATE
    ),
    Example(
        "within the gap of a closed one",
        SESSION,
        "0 6:j 3 12:j",
        ["6:j -> [0,0]=1@0", "3 -> late @3", "12:j -> j[6,6]=1@6"],
        0,
        WITH_LATE,
    ),
    Example(
        "behind a closed one",
        SESSION,
        "0 6:j 6 12:j",
        ["6:j -> [0,0]=1@0", "12:j -> j[6,6]=1@6, [6,6]=1@6"],
        0,
        WITH_LATE,
    ),
    Example(
        "an end is kept as long as sessions are open",
        SESSION,
        "0 6 11 16 21 5",
        ["6 -> [0,0]=1@0", "5 -> late @5"],
        0,
        WITH_LATE,
    ),
]

OUTPUT_EXAMPLES = [
    Example(
        "current",
        TUMBLING,
        "1 2 11 0",
        ["1 -> [0,10)=1@1", "2 -> [0,10)=2@2", "11 -> [10,20)=1@11", "0 -> [0,10)=3@0"],
        5,
        CURRENT,
    ),
    Example(
        "the three of one",
        TUMBLING,
        "1 2 15 3",
        ["1 -> [0,10)=1@1", "2 -> [0,10)=2@2", "15 -> [0,10)=2@9, [10,20)=1@15", "3 -> late @3"],
        5,
        ("final", "current", "late"),
    ),
]


EXAMPLES = {
    "tumbling": TUMBLING_EXAMPLES,
    "hopping": HOPPING_EXAMPLES,
    "sliding": SLIDING_EXAMPLES,
    "sessions": SESSION_EXAMPLES,
    "outputs": OUTPUT_EXAMPLES,
}


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=f"{what}: {example.name}")
        for what, examples in EXAMPLES.items()
        for example in examples
    ],
)
def test_a_record_tells_what_the_example_says(example: Example) -> None:
    windows = WindowExample(example.windows, grace_ms=example.grace_ms, outputs=example.outputs)
    assert windows.put(example.records) == example.told


def test_hopping_windows_with_gaps_are_refused_when_the_job_is_built() -> None:
    with pytest.raises(ConfigurationError, match="leaves gaps between its windows"):
        Hopping("10ms", every="15ms")


def test_time_survives_a_restart() -> None:
    first = WindowExample(TUMBLING, grace_ms=5)
    assert first.put("3 15") == ["15 -> [0,10)=1@9"]
    assert WindowExample(TUMBLING, grace_ms=5, outputs=WITH_LATE, store=first.store).put("9") == ["9 -> late @9"]


def test_time_goes_with_its_partition() -> None:
    first = WindowExample(TUMBLING, grace_ms=5)
    first.put("3 15", partition=0)
    first.put("3", partition=1)
    second = WindowExample(TUMBLING, grace_ms=5, outputs=WITH_LATE, store=first.store)
    assert second.put("9", partition=0) == ["9 -> late @9"]
    assert second.put("9 15", partition=1) == ["15 -> [0,10)=2@9"]


def test_a_longer_grace_opens_nothing() -> None:
    first = WindowExample(TUMBLING, grace_ms=5)
    first.put("3 15")
    second = WindowExample(TUMBLING, grace_ms=20, outputs=WITH_LATE, store=first.store)
    assert second.put("9") == ["9 -> late @9"]
    with pytest.raises(ConfigurationError, match="still open from before, and is none of these"):
        WindowExample(Tumbling("20ms"), store=first.store).put("16")


def test_an_idle_partition_tells_nothing_until_a_record_of_its_own_moves_time() -> None:
    example = WindowExample(TUMBLING)
    assert example.put("1 11", partition=0) == ["11 -> [0,10)=1@9"]
    assert example.put("2", partition=1) == []
    assert example.put("12", partition=1) == ["12 -> [0,10)=1@9"]


def test_a_closed_end_is_forgotten_in_time() -> None:
    example = WindowExample(SESSION)
    example.put("0 6:j")
    assert any(key == b"k" for _, _, key in example.store.states)  # type: ignore[attr-defined]
    example.put("11:j")
    assert not any(key == b"k" for _, _, key in example.store.states)  # type: ignore[attr-defined]
