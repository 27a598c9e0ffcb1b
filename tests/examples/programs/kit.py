"""The outside view of an example program: records for it, drawn by chance, and what must come of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

from twopc import Json, Serde

EXAMPLES = Path(__file__).parents[3] / "examples"
PARTITIONS = 4
NOON_MS = 1_700_000_000_000
"""When event time begins, where a program has any."""
JSON = Json()
H = TypeVar("H", bound=Hashable)

NAMED = 3
"""How many of the records that are missing, or too many, a complaint names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One record for a program, as it is in its topic. Without a partition it goes where its key belongs."""

    topic: str
    value: bytes
    key: bytes | None = None
    timestamp: int | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Out:
    """One committed record of an output; those of a partition come in their order."""

    partition: int
    key: str | None
    value: Any
    headers: Mapping[str, bytes | None]


Output = Mapping[str, Sequence[Out]]
"""What is committed, by topic."""

ByKey = Mapping[str | None, list[Any]]
"""Values of each key, in their order."""


class Program(ABC):
    """One program: the name of its file, and the serde of each output's values."""

    name: ClassVar[str]
    inputs: ClassVar[tuple[str, ...]]
    outputs: ClassVar[Mapping[str, Serde]]

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> Path:
        return EXAMPLES / f"{self.name}.py"

    @abstractmethod
    def draw(self, random: Random, count: int) -> list[Sent]:
        """Return about so many records, in the order in which they are sent."""

    @abstractmethod
    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        """Return what is wrong with the output; none if it is right, whatever crashed on the way."""


def text(key: bytes | str | None) -> str | None:
    """Return a key as text, whether it was decoded or not."""
    return key.decode() if isinstance(key, bytes) else key


def differences(what: str, found: Counter[H], expected: Counter[H]) -> list[str]:
    """Say of what there is too little or too much, where there is any."""
    missing, surplus = expected - found, found - expected
    return [
        f"{what}: {difference.total()} {how}, as {list(difference)[:NAMED]}"
        for how, difference in (("missing", missing), ("too many", surplus))
        if difference
    ]


def by_key(pairs: Iterable[tuple[bytes | str | None, Any]]) -> ByKey:
    """Return the values of each key, in their order."""
    found: defaultdict[str | None, list[Any]] = defaultdict(list)
    for key, value in pairs:
        found[text(key)].append(value)
    return found


def differences_by_key(what: str, found: ByKey, expected: ByKey) -> list[str]:
    """Say of what there is too little or too much; where it is neither, which keys have theirs in another order."""
    wrong = differences(what, _counted(found), _counted(expected))
    return wrong or [f"{what} of {key}: in another order" for key in expected if found[key] != expected[key]][:NAMED]


def _counted(values: ByKey) -> Counter[tuple[str | None, Any]]:
    return Counter((key, value) for key, each in values.items() for value in each)
