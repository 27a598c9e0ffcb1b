"""Orders of every kind: each is in one of three topics, whatever becomes of the job."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import JSON, Output, Program, Sent, differences
from twopc import Bytes

LARGE_CENTS = 10_000
STAGES = {"torn": b"VALUE_CONVERTER", "many": b"TRANSFORMATION"}


class Route(Program):
    """One in ten can't be read, one in ten can't be processed."""

    name = "route"
    inputs = ("orders",)
    outputs = {"orders-large": JSON, "orders-small": JSON, "orders-dead": Bytes()}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        return [Sent(topic="orders", value=_order(random, number), key=b"%d" % number) for number in range(count)]

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        found = {topic: Counter(_shown(out.value) for out in output[topic]) for topic in self.outputs}
        expected: dict[str, Counter[str]] = {topic: Counter() for topic in self.outputs}
        for record in sent:
            topic, value = _where(record.value)
            expected[topic][value] += 1
        wrong = [line for topic in self.outputs for line in differences(topic, found[topic], expected[topic])]
        dead = [out for out in output["orders-dead"] if out.headers["__connect.errors.stage"] != _stage(out.value)]
        return wrong + [f"orders-dead: {out.value!r} has the wrong reason" for out in dead[:1]]


def _order(random: Random, number: int) -> bytes:
    kind = random.random()
    if kind < 0.1:
        return b'{"id": %d' % number
    total = "many" if kind < 0.2 else random.randrange(2 * LARGE_CENTS) / 100
    return json.dumps({"id": number, "total": total}).encode()


def _where(value: bytes) -> tuple[str, str]:
    """Return the topic that an order belongs to, and how it is shown there."""
    if not value.endswith(b"}") or b"many" in value:
        return "orders-dead", _shown(value)
    order = json.loads(value)
    cents = round(order["total"] * 100)
    return "orders-large" if cents >= LARGE_CENTS else "orders-small", _shown(order | {"cents": cents})


def _stage(value: bytes) -> bytes:
    return STAGES["many" if value.endswith(b"}") else "torn"]


def _shown(value: object) -> str:
    return repr(value)
