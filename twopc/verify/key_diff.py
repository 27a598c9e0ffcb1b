"""Compares the expected records of one key with those that the reader saw, once the two first differ.

Records are indices into the two sequences of identities; each index of either sequence occurs in one list, once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from twopc.verify.alignment import align

Pair = tuple[int, int]


@dataclass(slots=True)
class KeyDiff:
    """The comparison of every expected and every seen record; pairs are (expected, seen)."""

    matched: list[Pair] = field(default_factory=list)
    reordered: list[Pair] = field(default_factory=list)
    disagreeing: list[Pair] = field(default_factory=list)
    duplicated: list[int] = field(default_factory=list)
    unexpected: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)


def in_order(expected: Sequence[int], found: Sequence[int], earlier: Collection[int] = ()) -> KeyDiff:
    """Judge a key whose order is determined; `earlier` are the identities that were expected and found before."""
    diff = KeyDiff(matched=align(expected, found))
    matched_expected, matched_found = (
        {left for left, _ in diff.matched},
        {right for _, right in diff.matched},
    )
    missing = [index for index in range(len(expected)) if index not in matched_expected]
    unclaimed = _by_identity(expected, missing)
    known = {*earlier, *expected}
    strangers = []
    for index, element in enumerate(found):
        if index in matched_found:
            continue
        if queue := unclaimed.get(element):
            diff.reordered.append((queue.popleft(), index))
        elif element in known:
            diff.duplicated.append(index)
        else:
            strangers.append(index)
    moved = {left for left, _ in diff.reordered}
    _pair_by_gap(diff, [index for index in missing if index not in moved], strangers)
    return diff


def in_any_order(
    expected: Sequence[int], found: Sequence[int], earlier: Collection[int] = (), pending: Collection[int] = ()
) -> KeyDiff:
    """Judge how often each record is there, and nothing else.

    Of those alike, the `pending` ones, by index, are found last: one that must be there is not missed for them.
    """
    diff = KeyDiff()
    unclaimed = _by_identity(expected, sorted(range(len(expected)), key=pending.__contains__))
    known = {*earlier, *expected}
    for index, element in enumerate(found):
        if queue := unclaimed.get(element):
            diff.matched.append((queue.popleft(), index))
        elif element in known:
            diff.duplicated.append(index)
        else:
            diff.unexpected.append(index)
    diff.missing = sorted(index for queue in unclaimed.values() for index in queue)
    return diff


def in_lanes(
    lanes: Sequence[int], expected: Sequence[int], found: Sequence[int], pending: Collection[int] = ()
) -> KeyDiff:
    """Judge a key whose records come from several input partitions: each of these keeps its order, and no more is said.

    Records that more than one of them makes are only counted: nothing tells whose they are.
    """
    lane_of: dict[int, int | None] = {}
    for lane, element in zip(lanes, expected, strict=True):
        lane_of[element] = lane if lane_of.get(element, lane) == lane else None
    diff = KeyDiff()
    for lane in sorted(set(lanes)):
        left = [index for index, element in enumerate(expected) if lane_of[element] == lane]
        right = [index for index, element in enumerate(found) if lane_of.get(element, -1) == lane]
        _add(diff, in_order([expected[n] for n in left], [found[n] for n in right]), left, right)
    left = [index for index, element in enumerate(expected) if lane_of[element] is None]
    right = [index for index, element in enumerate(found) if lane_of.get(element) is None]
    late = {place for place, index in enumerate(left) if index in pending}
    _add(diff, in_any_order([expected[n] for n in left], [found[n] for n in right], pending=late), left, right)
    return diff


def _by_identity(elements: Sequence[int], indices: Collection[int]) -> dict[int, deque[int]]:
    queues: dict[int, deque[int]] = defaultdict(deque)
    for index in indices:
        queues[elements[index]].append(index)
    return queues


def _pair_by_gap(diff: KeyDiff, missing: list[int], strangers: list[int]) -> None:
    """Between the same two matched records, a missing record and a stranger are one record with another value."""
    gaps: dict[int, deque[int]] = defaultdict(deque)
    for index, gap in _with_gaps(strangers, [right for _, right in diff.matched]):
        gaps[gap].append(index)
    for index, gap in _with_gaps(missing, [left for left, _ in diff.matched]):
        if gaps[gap]:
            diff.disagreeing.append((index, gaps[gap].popleft()))
        else:
            diff.missing.append(index)
    diff.unexpected.extend(sorted(index for queue in gaps.values() for index in queue))


def _with_gaps(indices: list[int], matched: list[int]) -> list[Pair]:
    """Pair each index with how many matched ones are before it; both are sorted."""
    pairs, gap = [], 0
    for index in indices:
        while gap < len(matched) and matched[gap] < index:
            gap += 1
        pairs.append((index, gap))
    return pairs


def _add(whole: KeyDiff, part: KeyDiff, left: Sequence[int], right: Sequence[int]) -> None:
    """Add the resolution of a part, whose indices are places in `left` and `right`."""
    whole.matched += [(left[one], right[other]) for one, other in part.matched]
    whole.reordered += [(left[one], right[other]) for one, other in part.reordered]
    whole.disagreeing += [(left[one], right[other]) for one, other in part.disagreeing]
    whole.duplicated += [right[index] for index in part.duplicated]
    whole.unexpected += [right[index] for index in part.unexpected]
    whole.missing += [left[index] for index in part.missing]
