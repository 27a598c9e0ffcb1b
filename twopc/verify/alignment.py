"""Aligns the records found with those expected: the longest common subsequence of two sequences of numbers.

What it leaves over on either side is the least that must have been lost, added or moved to explain the difference.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

CANDIDATES_MAX = 2_000_000
"""Pairs that are tried before those far off the diagonal are left out: they are many only if values repeat much."""

BAND = 64


def align(expected: Sequence[int], found: Sequence[int]) -> list[tuple[int, int]]:
    """Return index pairs of equal elements, increasing on both sides, as many as possible.

    Exact unless the elements repeat so much that there are more than CANDIDATES_MAX equal pairs.
    """
    start = _common(expected, found)
    end = _common(expected[start:][::-1], found[start:][::-1])
    inner = _longest(expected[start : len(expected) - end], found[start : len(found) - end])
    return [
        *((index, index) for index in range(start)),
        *((start + left, start + right) for left, right in inner),
        *((len(expected) - back, len(found) - back) for back in range(end, 0, -1)),
    ]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many elements are equal from the start on."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _longest(expected: Sequence[int], found: Sequence[int]) -> list[tuple[int, int]]:
    """Hunt and Szymanski's algorithm: `tails[n]` is the least place at which n + 1 matches can end so far."""
    tails: list[int] = []
    chains: list[Any] = []
    for index, places in _candidates(expected, found):
        for place in reversed(places):
            length = bisect_left(tails, place)
            chain = (place, index, chains[length - 1] if length else None)
            if length == len(tails):
                tails.append(place)
                chains.append(chain)
            else:
                tails[length], chains[length] = place, chain
    pairs = []
    last: Any = chains[-1] if chains else None
    while last is not None:
        place, index, last = last
        pairs.append((place, index))
    return pairs[::-1]


def _candidates(expected: Sequence[int], found: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the index of each found element, with the places at which an equal one is expected."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, element in enumerate(expected):
        places[element].append(place)
    near = sum(len(places.get(element, ())) for element in found) > CANDIDATES_MAX
    width = BAND + abs(len(expected) - len(found))
    for index, element in enumerate(found):
        equal = places.get(element, [])
        if near:
            equal = equal[bisect_left(equal, index - width) : bisect_right(equal, index + width)]
        yield index, equal
