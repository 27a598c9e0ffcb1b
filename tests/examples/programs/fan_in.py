"""Visits of two topics and formats: the totals of a user grow by each visit once, in whatever order they meet."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import JSON, Output, Program, Sent, differences
from twopc import Avro

VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": [{"name": "user", "type": "string"}, {"name": "ms", "type": "long"}],
}
AVRO = Avro(VISIT)
USERS = 10


class FanIn(Program):
    """A visit's length is a number that no other has: so a total says which visits it has."""

    name = "fan_in"
    inputs = ("web", "app")
    outputs = {"ms-per-user": JSON}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        return [_visit(random, number) for number in range(1, count + 1)]

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        expected = Counter(map(_read, sent))
        totals: defaultdict[str, int] = defaultdict(int)
        grown: Counter[tuple[str, int]] = Counter()
        for out in output["ms-per-user"]:
            user = out.key or ""
            grown[user, out.value - totals[user]] += 1
            totals[user] = out.value
        return differences("visits", grown, expected)


def _visit(random: Random, number: int) -> Sent:
    visit = {"user": f"u{random.randrange(USERS)}", "ms": number}
    if random.random() < 0.5:
        return Sent(topic="web", value=json.dumps(visit | {"page": "/"}).encode())
    value = AVRO.serialize(visit)
    assert value is not None
    return Sent(topic="app", value=value)


def _read(record: Sent) -> tuple[str, int]:
    visit = json.loads(record.value) if record.topic == "web" else AVRO.deserialize(record.value)
    return visit["user"], visit["ms"]
