"""Orders joined with customers, who change meanwhile: each order once, with a version of its customer."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random

from tests.examples.programs.kit import JSON, Output, Program, Sent, differences

CUSTOMERS = 12


class Enrich(Program):
    """Versions are numbered, and which of two topics is read first nothing fixes: so a name may only never go back."""

    name = "enrich"
    inputs = ("orders", "customers")
    outputs = {"orders-enriched": JSON}  # noqa: RUF012

    def draw(self, random: Random, count: int) -> list[Sent]:
        versions: Counter[str] = Counter()
        sent = []
        for number in range(count):
            customer = f"c{random.randrange(CUSTOMERS)}"
            key = customer.encode()
            if random.random() < 0.2:
                versions[customer] += 1
                value = {"name": f"{customer} {versions[customer]}"}
                sent.append(Sent(topic="customers", value=json.dumps(value).encode(), key=key))
            else:
                sent.append(Sent(topic="orders", value=json.dumps({"id": number}).encode(), key=key))
        return sent

    def complaints(self, sent: Sequence[Sent], output: Output) -> list[str]:
        records = output["orders-enriched"]
        versions = Counter((record.key or b"").decode() for record in sent if record.topic == "customers")
        orders = [record for record in sent if record.topic == "orders"]
        expected = Counter((json.loads(each.value)["id"], (each.key or b"").decode()) for each in orders)
        wrong = differences("orders", Counter((out.value["id"], out.key or "") for out in records), expected)
        seen: defaultdict[str, int] = defaultdict(int)
        for out in records:
            customer, version = _version(out.value["name"])
            of_another = customer not in (None, out.key)
            if of_another or not seen[out.key or ""] <= version <= versions[out.key or ""]:
                wrong.append(f"order {out.value['id']} of {out.key} has the name {out.value['name']!r}")
            seen[out.key or ""] = version
        return wrong


def _version(name: str | None) -> tuple[str | None, int]:
    if name is None:
        return None, 0
    customer, version = name.split()
    return customer, int(version)
