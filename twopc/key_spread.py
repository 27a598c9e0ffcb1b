"""How the keys of inputs are spread over their partitions, by a sample, and which keys that takes apart. Pure.

A state by key is kept for a partition number, so each key must be in partitions of one number. Who writes chooses the
partition: Java's clients and librdkafka's do so in different ways unless they are told otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from twopc.listing import listed

KEY_SHOWN = 60
"""So many characters of a key are shown."""


@dataclass(frozen=True, slots=True)
class KeySample:
    """The keys of some records of an input, each with the numbers of the partitions that it was read from.

    `ways` names the ways of choosing partitions that all of them fit, where they are enough to say so. A `whole` sample
    says all that more records would. `source` is the operator id of the input's source.
    """

    input: str
    places: Mapping[bytes, frozenset[int]]
    ways: frozenset[str] = frozenset()
    whole: bool = False
    source: str = ""


def keys_apart(samples: Sequence[KeySample], keyed: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Say of which keyed operators a key has several states; `keyed` has the sources of each."""
    found = {}
    for operator, sources in keyed.items():
        own = [sample for sample in samples if sample.source in sources]
        if (why := _key_in_two_places(own) or _two_ways(own)) is not None:
            found[operator] = (
                f"{operator!r} keeps a state for each key, and {why}: such a key has several states, and each counts "
                "a part of its records. Have all that write these inputs choose partitions in one way, or give the "
                f"records their key by key_by before {operator!r}"
            )
    return found


def _key_in_two_places(samples: Sequence[KeySample]) -> str | None:
    numbers: dict[bytes, set[int]] = {}
    for sample in samples:
        for key, partitions in sample.places.items():
            numbers.setdefault(key, set()).update(partitions)
    apart = next((key for key, found in numbers.items() if len(found) > 1), None)
    if apart is None:
        return None
    places = [f"{sample.input}[{n}]" for sample in samples for n in sorted(sample.places.get(apart, ()))]
    ways = f" ({note})" if (note := _ways(samples)) else ""
    return f"key {_shown(apart)} is in {listed(places)}{ways}"


def _two_ways(samples: Sequence[KeySample]) -> str | None:
    """Say that two inputs are written in different ways, though no key was seen in both."""
    known = [sample for sample in samples if sample.ways]
    differing = next((pair for pair in combinations(known, 2) if not pair[0].ways & pair[1].ways), None)
    return None if differing is None else f"their keys are spread in different ways ({_ways(differing)})"


def _ways(samples: Iterable[KeySample]) -> str:
    return ", ".join(f"{sample.input}: {' or '.join(sorted(sample.ways))}" for sample in samples if sample.ways)


def _shown(key: bytes) -> str:
    text = repr(key.decode("utf-8", "backslashreplace"))
    return text if len(text) <= KEY_SHOWN else f"{text[:KEY_SHOWN]}..."
