"""The number of records of each key: from one to all of them, each number once and in its order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import Output, Program, Sent, by_key, differences_by_key
from twopc import Bytes

KEYS = 10


class CountByKey(Program):
    """Records that differ in nothing but their keys."""

    name = "count_by_key"
    inputs = ("in",)
    outputs = {"out": Bytes()}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        return [Sent(topic="in", value=b"x", key=b"k%d" % random.randrange(KEYS)) for _ in range(count)]

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        counted = Counter(record.key for record in sent)
        expected = by_key((key, b"%d" % number) for key, many in counted.items() for number in range(1, many + 1))
        return differences_by_key("counts", by_key((out.key, out.value) for out in output["out"]), expected)
