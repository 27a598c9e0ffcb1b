"""Numbers of which the even ones go on, with their halves: each once, those of a key in their order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import JSON, Output, Program, Sent, by_key, differences_by_key

KEYS = 10


class KeepEven(Program):
    """No number is sent twice."""

    name = "keep_even"
    inputs = ("in",)
    outputs = {"out": JSON}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        return [
            Sent(topic="in", value=json.dumps({"n": number}).encode(), key=b"k%d" % random.randrange(KEYS))
            for number in range(count)
        ]

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        read = [(record.key, json.loads(record.value)["n"]) for record in sent]
        expected = by_key((key, (number, number // 2)) for key, number in read if number % 2 == 0)
        found = by_key((out.key, (out.value["n"], out.value["half"])) for out in output["out"])
        return differences_by_key("numbers", found, expected)
