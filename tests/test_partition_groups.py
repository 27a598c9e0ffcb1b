"""Which subtask reads which split, and which snapshots it is restored from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.errors import ConfigurationError
from twopc.partition_groups import assign, concerning, owned, refuse_uneven
from twopc.protocol.facts import SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import SubtaskIndex
from twopc.source import Split


def snapshot(subtask: int) -> SubtaskSnapshot:
    position = SplitPosition(f"in[{subtask}]", subtask, [5, "an-id"])
    return SubtaskSnapshot.of(SubtaskIndex(subtask), [position], StateHandle(f"chk-7/subtask-{subtask}", "", 0, 0), ())


def splits(source: str, topic: str, partitions: int) -> list[Split]:
    return [Split(f"{topic}[{number}]", number, 0, None, source) for number in range(partitions)]


SNAPSHOTS = (snapshot(0), snapshot(1))


@pytest.mark.parametrize(
    ("subtask", "numbers", "concerned"),
    [(0, (0, 2), (0,)), (1, (1, 3), (1,)), (0, (0, 1, 2, 3), (0, 1)), (2, (2,), (0,)), (2, (), ()), (1, (), (1,))],
    ids=["its own", "its own, of the other", "of fewer", "of more", "no state by key", "its own, without state by key"],
)
def test_a_subtask_is_restored_from_the_snapshots_that_hold_something_of_its_own(
    subtask: int, numbers: tuple[int, ...], concerned: tuple[int, ...]
) -> None:
    found = concerning(SubtaskIndex(subtask), numbers, SNAPSHOTS)
    assert [each.subtask for each in found] == list(concerned)


def test_nothing_concerns_a_subtask_where_nothing_is_restored() -> None:
    assert concerning(SubtaskIndex(0), [0, 1], ()) == ()


sources = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 9), min_size=1)


@given(sources, st.frozensets(st.sampled_from("abcdef")), st.integers(1, 7))
def test_every_split_has_one_subtask_and_every_number_one_owner(
    partitions: dict[str, int], keyed: frozenset[str], parallelism: int
) -> None:
    every = [split for source, count in partitions.items() for split in splits(source, source, count)]
    shares = assign(every, parallelism, keyed)
    assert len(shares) == parallelism
    assert sorted(split.id for share in shares for split in share) == sorted(split.id for split in every)
    numbers = [owned(share, keyed) for share in shares]
    assert [number % parallelism for each in numbers for number in each] == [
        subtask for subtask, each in enumerate(numbers) for _ in each
    ]


@given(sources, st.integers(1, 7))
def test_what_keeps_no_state_is_dealt_out_evenly(partitions: dict[str, int], parallelism: int) -> None:
    every = [split for source, count in partitions.items() for split in splits(source, source, count)]
    sizes = [len(share) for share in assign(every, parallelism, ())]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("keyed", [(), ("in",)], ids=["no state", "state by key"])
@pytest.mark.parametrize(("parallelism", "expected"), [(1, [[0, 1, 2]]), (2, [[0, 2], [1]]), (4, [[0], [1], [2], []])])
def test_the_partitions_of_one_topic_are_dealt_out_in_turn(
    keyed: tuple[str, ...], parallelism: int, expected: list[list[int]]
) -> None:
    shares = assign(splits("in", "in", 3), parallelism, keyed)
    assert [[split.partition for split in share] for share in shares] == expected


def test_splits_without_state_go_where_there_is_least_to_read() -> None:
    shares = assign([*splits("free", "free", 3), *splits("keyed", "keyed", 3)], 2, {"keyed"})
    assert [[split.id for split in share] for share in shares] == [
        ["keyed[0]", "keyed[2]", "free[1]"],
        ["keyed[1]", "free[0]", "free[2]"],
    ]


def topic_of(split: Split) -> str:
    return split.id.partition("[")[0]


def test_inputs_of_different_numbers_of_partitions_do_not_meet_at_an_operator_with_state_by_key() -> None:
    every = [*splits("clicks", "web", 3), *splits("orders", "shop", 2), *splits("other", "other", 7)]
    named = r"'count' keeps .* \(shop: 2, web: 3\).*partitions=3\) between shop and 'count'"
    with pytest.raises(ConfigurationError, match=named):
        refuse_uneven("j", every, {"last": ("other",), "count": ("clicks", "orders")}, topic_of)
    refuse_uneven("j", every, {"last": ("other",), "count": ("clicks",), "also": ("orders",)}, topic_of)


def test_topics_of_one_source_are_inputs_of_their_own() -> None:
    every = [*splits("both", "web", 3), *splits("both", "shop", 2)]
    with pytest.raises(ConfigurationError, match=r"\(shop: 2, web: 3\)"):
        refuse_uneven("j", every, {"count": ("both",)}, topic_of)
