"""Schemas of the tests, and a short way to open a serde: each test's are closed at its end."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from twopc import Serde
from twopc.connect import SerdeContext

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
ORDER_2: dict[str, Any] = {
    **ORDER,
    "fields": [
        {"name": "id", "type": "long"},
        *ORDER["fields"][1:],
        {"name": "note", "type": "string", "default": "-"},
    ],
}
ORDER_OF_TEXT: dict[str, Any] = {**ORDER, "fields": [{"name": "id", "type": "string"}]}
MONEY: dict[str, Any] = {
    "type": "record",
    "name": "Money",
    "namespace": "shop.base",
    "fields": [{"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}],
}
BILL: dict[str, Any] = {
    "type": "record",
    "name": "Bill",
    "namespace": "shop",
    "fields": [{"name": "total", "type": "shop.base.Money"}, {"name": "tax", "type": "shop.base.Money"}],
}
VISIT: dict[str, Any] = {
    "title": "Visit",
    "type": "object",
    "properties": {"user": {"type": "string"}},
    "required": ["user"],
}


opened = ExitStack()


def reading(serde: Serde, topic: str) -> Serde:
    return _open(serde, SerdeContext(topic, is_key=False))


def writing(serde: Serde, topic: str, *, is_key: bool = False) -> Serde:
    return _open(serde, SerdeContext(topic, is_key, writing=True))


def _open(serde: Serde, context: SerdeContext) -> Serde:
    found = serde.open(context)
    opened.callback(found.close)
    return found
