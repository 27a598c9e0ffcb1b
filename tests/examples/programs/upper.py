"""Values in upper case: each once, those of a key in their order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import Output, Program, Sent, by_key, differences_by_key
from twopc import Bytes

KEYS = 10


class Upper(Program):
    """A value is a number that no other has."""

    name = "upper"
    inputs = ("in",)
    outputs = {"out": Bytes()}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        return [
            Sent(topic="in", value=b"visit-%d" % number, key=b"k%d" % random.randrange(KEYS)) for number in range(count)
        ]

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        expected = by_key((record.key, record.value.upper()) for record in sent)
        return differences_by_key("values", by_key((out.key, out.value) for out in output["out"]), expected)
