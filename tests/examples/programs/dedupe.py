"""Payments that arrive several times, to any partition: each id comes out once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import JSON, NOON_MS, Output, Program, Sent, differences

SPREAD = 30
"""How far an id may lie behind the newest: so it comes several times, before and after any crash."""


class Dedupe(Program):
    """All within a day, so that no id is forgotten."""

    name = "dedupe"
    inputs = ("payments",)
    outputs = {"payments-once": JSON}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        sent = []
        for number in range(count):
            value = {"id": f"p{max(0, number // 3 - random.randrange(SPREAD))}", "amount": number}
            sent.append(Sent(topic="payments", value=json.dumps(value).encode(), timestamp=NOON_MS + number))
        return sent

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        found = Counter(out.value["id"] for out in output["payments-once"])
        wrong = differences("ids", found, Counter({json.loads(record.value)["id"] for record in sent}))
        known = {record.value for record in sent}
        strange = [out.value for out in output["payments-once"] if json.dumps(out.value).encode() not in known]
        return wrong + [f"nobody paid {value}" for value in strange[:1]]
