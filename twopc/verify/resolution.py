"""The records of one key, held against each other whole, once the first of them was not the one that was due.

All is said in indices into the two sequences of identities; each index of either occurs in one list, once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from twopc.verify.alignment import align

Pair = tuple[int, int]


@dataclass(slots=True)
class Resolution:
    """What became of the expected and of the found; pairs are (expected, found)."""

    matched: list[Pair] = field(default_factory=list)
    reordered: list[Pair] = field(default_factory=list)
    disagreeing: list[Pair] = field(default_factory=list)
    duplicated: list[int] = field(default_factory=list)
    unexpected: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)


def in_order(expected: Sequence[int], found: Sequence[int], earlier: Collection[int] = ()) -> Resolution:
    """Judge a key whose order is determined; `earlier` are the identities that were expected and found before."""
    made = Resolution(matched=align(expected, found))
    matched_expected, matched_found = {mine for mine, _ in made.matched}, {theirs for _, theirs in made.matched}
    missing = [index for index in range(len(expected)) if index not in matched_expected]
    unclaimed = _by_identity(expected, missing)
    known = {*earlier, *expected}
    strangers = []
    for index, element in enumerate(found):
        if index in matched_found:
            continue
        if queue := unclaimed.get(element):
            made.reordered.append((queue.popleft(), index))
        elif element in known:
            made.duplicated.append(index)
        else:
            strangers.append(index)
    moved = {mine for mine, _ in made.reordered}
    _pair_by_gap(made, [index for index in missing if index not in moved], strangers)
    return made


def in_any_order(expected: Sequence[int], found: Sequence[int], earlier: Collection[int] = ()) -> Resolution:
    """Judge how often each record is there, and nothing else."""
    made = Resolution()
    unclaimed = _by_identity(expected, range(len(expected)))
    known = {*earlier, *expected}
    for index, element in enumerate(found):
        if queue := unclaimed.get(element):
            made.matched.append((queue.popleft(), index))
        elif element in known:
            made.duplicated.append(index)
        else:
            made.unexpected.append(index)
    made.missing = sorted(index for queue in unclaimed.values() for index in queue)
    return made


def in_lanes(lanes: Sequence[int], expected: Sequence[int], found: Sequence[int]) -> Resolution:
    """Judge a key whose records come from several input partitions: each of these keeps its order, and no more is said.

    Records that more than one of them makes are only counted: nothing tells whose they are.
    """
    lane_of: dict[int, int | None] = {}
    for lane, element in zip(lanes, expected, strict=True):
        lane_of[element] = lane if lane_of.get(element, lane) == lane else None
    made = Resolution()
    for lane in sorted(set(lanes)):
        mine = [index for index, element in enumerate(expected) if lane_of[element] == lane]
        theirs = [index for index, element in enumerate(found) if lane_of.get(element, -1) == lane]
        _add(made, in_order([expected[n] for n in mine], [found[n] for n in theirs]), mine, theirs)
    mine = [index for index, element in enumerate(expected) if lane_of[element] is None]
    theirs = [index for index, element in enumerate(found) if lane_of.get(element) is None]
    _add(made, in_any_order([expected[n] for n in mine], [found[n] for n in theirs]), mine, theirs)
    return made


def _by_identity(elements: Sequence[int], indices: Collection[int]) -> dict[int, deque[int]]:
    queues: dict[int, deque[int]] = defaultdict(deque)
    for index in indices:
        queues[elements[index]].append(index)
    return queues


def _pair_by_gap(made: Resolution, missing: list[int], strangers: list[int]) -> None:
    """Between the same two matched records, a missing record and a stranger are one record with another value."""
    gaps: dict[int, deque[int]] = defaultdict(deque)
    for index, gap in _with_gaps(strangers, [theirs for _, theirs in made.matched]):
        gaps[gap].append(index)
    for index, gap in _with_gaps(missing, [mine for mine, _ in made.matched]):
        if gaps[gap]:
            made.disagreeing.append((index, gaps[gap].popleft()))
        else:
            made.missing.append(index)
    made.unexpected.extend(sorted(index for queue in gaps.values() for index in queue))


def _with_gaps(indices: list[int], matched: list[int]) -> list[Pair]:
    """Pair each index with how many matched ones are before it; both are sorted."""
    pairs, gap = [], 0
    for index in indices:
        while gap < len(matched) and matched[gap] < index:
            gap += 1
        pairs.append((index, gap))
    return pairs


def _add(whole: Resolution, part: Resolution, mine: Sequence[int], theirs: Sequence[int]) -> None:
    """Add the resolution of a part, whose indices are places in `mine` and `theirs`."""
    whole.matched += [(mine[one], theirs[other]) for one, other in part.matched]
    whole.reordered += [(mine[one], theirs[other]) for one, other in part.reordered]
    whole.disagreeing += [(mine[one], theirs[other]) for one, other in part.disagreeing]
    whole.duplicated += [theirs[index] for index in part.duplicated]
    whole.unexpected += [theirs[index] for index in part.unexpected]
    whole.missing += [mine[index] for index in part.missing]
