"""Forged histories: what a right job would have written, as its input makes it, for tests to spoil."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from twopc.kafka.topic_partition import TopicPartition
from twopc.verify import Expected, Found, Outcome, Place, Transaction, Verdict, judge

SOURCES = tuple(TopicPartition("in", number) for number in range(3))
TARGETS = tuple(TopicPartition("out", number) for number in range(2))


@dataclass(frozen=True, slots=True)
class History:
    """The expected history, in the order of the input, and the found one, in that of the output; nothing is wrong."""

    expected: tuple[Expected, ...]
    found: tuple[Found, ...]


def verdict_on(
    expected: Iterable[Expected],
    found: Iterable[Found],
    *,
    complete: Mapping[TopicPartition, int] | None = None,
    cuts: Mapping[TopicPartition, Sequence[int]] | None = None,
) -> Verdict:
    return judge.verdict_on("out", expected, found, complete=complete, cuts=cuts, examples=3)


def made(partition: int, offset: int, key: bytes | None, value: bytes | None) -> Expected:
    return Expected(Place(SOURCES[partition], offset), key, value)


def history_of(made_of: Sequence[Expected], sizes: Sequence[int], turns: Sequence[int]) -> History:
    """A subtask for each input partition writes transactions of these sizes; the turns say whose is the next."""
    waiting: dict[TopicPartition, list[Expected]] = defaultdict(list)
    for each in made_of:
        waiting[each.source.partition].append(each)
    log: dict[TopicPartition, list[Found]] = {partition: [] for partition in TARGETS}
    ends = dict.fromkeys(TARGETS, 0)
    numbers = dict.fromkeys(TARGETS, 0)
    turn = 0
    while waiting:
        source = sorted(waiting)[turns[turn % len(turns)] % len(waiting)]
        size = sizes[turn % len(sizes)]
        turn += 1
        _write(waiting[source][:size], SOURCES.index(source), log, ends, numbers)
        del waiting[source][:size]
        if not waiting[source]:
            del waiting[source]
    return History(tuple(made_of), tuple(record for partition in TARGETS for record in log[partition]))


def _write(
    records: Sequence[Expected],
    producer: int,
    log: dict[TopicPartition, list[Found]],
    ends: dict[TopicPartition, int],
    numbers: dict[TopicPartition, int],
) -> None:
    """One transaction: its records, and a marker in each partition that has any."""
    used = set()
    for each in records:
        target = TARGETS[target_of(each)]
        transaction = Transaction(producer, 0, target, numbers[target], Outcome.COMMITTED)
        log[target].append(Found(Place(target, ends[target]), each.key, each.value, (), transaction))
        ends[target] += 1
        used.add(target)
    for target in used:
        ends[target] += 1
        numbers[target] += 1


def target_of(each: Expected) -> int:
    """Where the record goes: by its key, and without one anywhere."""
    return (each.source.offset // 3 if each.key is None else each.key[0]) % len(TARGETS)


@st.composite
def histories(draw: st.DrawFn, *, distinct: bool, keys: Sequence[bytes | None], own_keys: bool) -> History:
    """Right histories. With `own_keys` no two input partitions share a key; without `distinct` values repeat."""
    shape = draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(keys), st.sampled_from(b"xyz")), max_size=30))
    ends = [0, 0, 0]
    expected = []
    for number, (partition, key, letter) in enumerate(shape):
        name = key if key is None or not own_keys else b"%s%d" % (key, partition)
        value = b"%d" % number if distinct else bytes([letter])
        expected.append(made(partition, ends[partition], name, value))
        ends[partition] += 1
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    turns = draw(st.lists(st.integers(0, 2), min_size=1, max_size=5))
    return history_of(expected, sizes, turns)
