"""The expected output of the operators of the drills' job, computed from the input alone, and what is wrong with it."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from tests.counting.numbered_input import NumberedInput
from tests.crash_cells.every_operator import (
    DELETED,
    EVERY,
    FULL,
    GRACE_MS,
    LAST,
    MAP_TTL_MS,
    NOON_MS,
    RECORD_MS,
    REFUSED,
    RESTS,
    WINDOW_MS,
    event_time,
    next_timer,
)
from tests.crash_cells.expected_pairs import Pairs
from tests.crash_cells.expected_windows import Windows
from twopc.testing.topics import Read, Write

CHANGE_EVERY = 10
"""One change of the table for so many records."""
DELETION_EVERY = 9

OperatorOutput = Mapping[tuple[str, bytes], Sequence[Any]]
"""What was told under a name and a key, in its order."""


def changes(source: NumberedInput) -> Iterator[Write]:
    """The changes of the table: each has the time of a record, and a millisecond; some delete."""
    for number in range(source.records // CHANGE_EVERY):
        lane = number % len(source.keys)
        value = None if number % DELETION_EVERY == 0 else b"%d" % number
        yield Write(value, source.keys[lane], source.partition_of(lane), _changed_at(number))


def names() -> Iterator[Write]:
    """What each rest is called."""
    for rest in range(RESTS):
        yield Write(json.dumps(_name(rest)).encode(), b"%d" % rest)


def read_operator_output(reads: Iterable[Read]) -> OperatorOutput:
    """Sort what stands in the topic."""
    told = defaultdict[tuple[str, bytes], list[Any]](list)
    for read in reads:
        what, *rest = json.loads(read.value or b"")
        told[what, read.key or b""].append(rest)
    return told


def complaints(source: NumberedInput, told: OperatorOutput, dead: Counter[bytes], *, drained: bool) -> Iterator[str]:
    """Yield what is wrong with what was told, and with the dead letters."""
    right = _expected(source, drained=drained)
    for what, key in sorted({*right, *(each for each in told if each[0] != "rest")}):
        wanted, found = right.get((what, key), ()), told.get((what, key), ())
        if list(found) != list(wanted):
            yield f"{what} of key {key!r}: {_difference(wanted, found)}"
    for rest in range(RESTS):
        yield from _wrong_counts(source, rest, told.get(("rest", b"%d" % rest), ()))
    refused = Counter(b"%d" % number for number in range(0, source.records, EVERY * REFUSED))
    if dead != refused:
        yield f"dead letters: {(refused - dead).total()} missing, {(dead - refused).total()} too many"


def _wrong_counts(source: NumberedInput, rest: int, found: Sequence[Any]) -> Iterator[str]:
    """Numbers of one input partition come in their order, those of several in any: each is counted, once."""
    numbers = [number for number, _ in found]
    wanted = [number for number in range(rest, source.records, RESTS) if number % EVERY == 0 and number % REFUSED]
    if sorted(numbers) != wanted:
        lost, more = Counter(wanted) - Counter(numbers), Counter(numbers) - Counter(wanted)
        yield f"rest {rest}: {lost.total()} numbers missing, {more.total()} too many"
    if [count for _, count in found] != list(range(1, len(found) + 1)):
        yield f"rest {rest}: it was not counted one by one"
    for partition in range(source.partitions):
        mine = [number for number in numbers if _partition_of(source, number) == partition]
        if mine != sorted(mine):
            yield f"rest {rest}: the numbers of input partition {partition} are out of order"


def _difference(wanted: Sequence[Any], found: Sequence[Any]) -> str:
    pairs = zip(wanted, found, strict=False)
    at = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(wanted), len(found)))
    return (
        f"{len(found)} of {len(wanted)}; from {at} on it is {list(found[at : at + 3])}, not {list(wanted[at : at + 3])}"
    )


@cache
def _expected(source: NumberedInput, *, drained: bool) -> dict[tuple[str, bytes], list[Any]]:
    told = defaultdict[tuple[str, bytes], list[Any]](list)
    for partition in range(source.partitions):
        played = _Partition(source, partition, told)
        for number in range(0, source.records, EVERY):
            if _partition_of(source, number) == partition:
                played.see(number)
        played.read_changes(math.inf)
        if drained:
            played.let_pass(math.inf)
    return told


class _Partition:
    """One partition number, played record by record: table, timers and windows by their definitions."""

    def __init__(self, source: NumberedInput, partition: int, told: defaultdict[tuple[str, bytes], list[Any]]) -> None:
        self._told = told
        self._keys = source.keys
        self._now: float = -math.inf
        changed = [write for write in changes(source) if write.partition == partition]
        self._changes = iter([*changed, Write(None, None, None, None)])
        self._next = next(self._changes)
        self._table: dict[bytes, int] = {}
        self._seen = Counter[bytes]()
        self._timers: set[tuple[int, bytes]] = set()
        self._windows = Counter[tuple[int, bytes]]()
        self._others = Windows(lambda kind, key, window: told[kind, key].append(window))
        self._kept = defaultdict[bytes, list[int]](list)
        self._of_parity = defaultdict[bytes, Counter[int]](Counter)
        self._counted_at = defaultdict[bytes, dict[int, float]](dict)
        self._pairs = Pairs(lambda key, pair: told["pair", key].append(pair))

    def see(self, number: int) -> None:
        key, at = self._keys[number % len(self._keys)], event_time(number)
        self.let_pass(max(self._now, at))
        self._told["joined", key].append([number, self._table.get(key)])
        self._told["named", key].append([number, _name(number % RESTS)])
        self._pairs.see_number(key, at, number)
        self._keep(key, number)
        self._others.see(key, at, self._now)
        self._seen[key] += 1
        if self._seen[key] % DELETED:
            self._timers.add((next_timer(at), key))
        else:
            self._timers.discard((next_timer(at), key))
        self.let_pass(self._now)
        start = at // WINDOW_MS * WINDOW_MS
        if start + WINDOW_MS + GRACE_MS <= self._now:
            self._told["late", key].append([number])
        else:
            self._windows[start, key] += 1

    def let_pass(self, now: float) -> None:
        """Time reaches this: the table changes, timers fire, windows close."""
        self._now = now
        self.read_changes(now)
        self._pairs.let_pass(now)
        for at, key in sorted(timer for timer in self._timers if timer[0] <= now):
            self._timers.remove((at, key))
            self._told["timer", key].append([at, self._seen[key]])
        self._others.let_pass(now)
        for start, key in sorted(each for each in self._windows if each[0] + WINDOW_MS + GRACE_MS <= now):
            self._told["final", key].append([start, self._windows.pop((start, key))])

    def _keep(self, key: bytes, number: int) -> None:
        self._kept[key].append(number)
        self._told["kept", key].append(self._kept[key][-LAST:])
        counts, counted_at = self._of_parity[key], self._counted_at[key]
        for parity in [each for each in counts if self._now >= counted_at[each] + MAP_TTL_MS]:
            del counts[parity]
        counted_at[number % 2] = self._now
        counts[number % 2] += 1
        if counts[number % 2] == FULL:
            del counts[number % 2]
            self._told["full", key].append([number, [str(parity) for parity in sorted(counts)]])

    def read_changes(self, until: float) -> None:
        """Take in the changes up to this time."""
        while self._next.timestamp is not None and self._next.timestamp <= until:
            self._change(self._next, self._next.timestamp)
            self._next = next(self._changes)

    def _change(self, change: Write, at: int) -> None:
        assert change.key is not None
        self._pairs.see_change(change.key, at, None if change.value is None else int(change.value))
        if change.value is None:
            self._table.pop(change.key, None)
        else:
            self._table[change.key] = int(change.value)


def _name(rest: int) -> str:
    return f"rest-{rest}"


def _changed_at(number: int) -> int:
    return NOON_MS + number * CHANGE_EVERY * RECORD_MS + 1


def _partition_of(source: NumberedInput, number: int) -> int:
    return source.partition_of(number % len(source.keys))
