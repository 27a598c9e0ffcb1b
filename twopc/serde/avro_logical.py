"""Avro's logical types: what is written reads back equal, and what can't is refused by the name of its field.

fastavro's own writers drop microseconds and time zones, and let a decimal outgrow its precision; its readers round a
decimal to it. So each logical type goes by a name of our own in the schema that fastavro is given, and what turns its
values into Avro's is here. A value that doesn't fit becomes a `Refused`, which fits no type: a union may have another
branch for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

from twopc.errors import ConfigurationError

FIELD = "twopc.field"
"""The property of a schema that names the field it is of."""

_OURS = "twopc-"
_EXACT = Context(prec=100_000)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_HERE = datetime(1970, 1, 1)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)


class Refused:
    """Stands for a value that its type can't hold, and says why."""

    def __init__(self, value: object, why: str) -> None:
        self._said = f"{value!r}, {why}"

    def __repr__(self) -> str:
        return self._said


Prepare = Callable[[Any, Mapping[str, Any]], Any]
Restore = Callable[[Any, Mapping[str, Any], Any], Any]


def renamed(kind: str, schema: Mapping[str, Any], field: str) -> dict[str, Any] | None:
    """Return the schema of a logical type under our name for it; None for one that has none, or that is unknown."""
    logical = schema.get("logicalType")
    if f"{kind}-{logical}" not in _TYPES:
        return None
    if logical == "decimal" and int(schema.get("precision", 0)) < 1:
        raise ConfigurationError(f"the decimal {field or 'of the schema'} has no precision of at least 1")
    return {**schema, "logicalType": f"{_OURS}{logical}", FIELD: field}


def generable(kind: str, schema: Mapping[str, Any], field: str) -> dict[str, Any] | None:
    """Return the schema of bytes, of which any stand for a decimal of this schema; None for another type."""
    if schema.get("logicalType") != "decimal":
        return None
    size = (int(10 ** schema["precision"]).bit_length() - 1) // 8
    return {"type": "fixed", "size": size, "name": f"decimal_{field.replace('.', '_')}_{id(schema)}"}


def _unscaled(value: Any, schema: Mapping[str, Any]) -> int | Refused:
    precision, scale = schema["precision"], schema.get("scale", 0)
    if isinstance(value, bytes):
        unscaled = int.from_bytes(value, "big", signed=True)
        return unscaled if abs(unscaled) < 10**precision else Refused(value, f"which exceeds precision {precision}")
    if not isinstance(value, Decimal) or not value.is_finite():
        return Refused(value, f"which is no finite Decimal of precision {precision} and scale {scale}")
    if value and value.adjusted() + 1 + scale > precision:
        return Refused(value, f"which has too many digits for precision {precision} and scale {scale}")
    shifted = value.scaleb(scale, _EXACT)
    if shifted != shifted.to_integral_value():
        return Refused(value, f"which has more digits behind the point than scale {scale} holds")
    return int(shifted)


def _decimal_to_bytes(value: Any, schema: Mapping[str, Any]) -> Any:
    unscaled = _unscaled(value, schema)
    if isinstance(unscaled, Refused):
        return unscaled
    size = schema.get("size") or (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)


def _decimal_from_bytes(data: bytes, schema: Mapping[str, Any], _reader: object) -> Decimal:
    unscaled, precision = int.from_bytes(data, "big", signed=True), schema["precision"]
    if abs(unscaled) >= 10**precision:
        raise ValueError(f"{schema[FIELD] or 'the decimal'} has more than the {precision} digits of its precision")
    return Decimal(unscaled).scaleb(-schema.get("scale", 0), _EXACT)


def _uuid_to_text(value: Any, _schema: object) -> Any:
    try:
        return str(value if isinstance(value, UUID) else UUID(value))
    except (ValueError, AttributeError, TypeError):
        return Refused(value, "which is no UUID")


def _uuid_to_bytes(value: Any, _schema: object) -> Any:
    if isinstance(value, UUID):
        return value.bytes
    return value if isinstance(value, bytes) and len(value) == 16 else Refused(value, "which is no UUID")


def _days(value: Any, _schema: object) -> Any:
    if isinstance(value, datetime):
        return Refused(value, "whose time of day a date would lose: give its date()")
    return value.toordinal() - _EPOCH_ORDINAL if isinstance(value, date) else _number(value, "date")


def _time(unit: int, value: Any) -> Any:
    if not isinstance(value, time):
        return _number(value, "time")
    if value.tzinfo is not None:
        return Refused(value, "whose time zone would be lost")
    since = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return _in_units(value, since // _MICROSECOND, unit)


def _timestamp(unit: int, epoch: datetime, value: Any) -> Any:
    if not isinstance(value, datetime):
        return _number(value, "datetime")
    if (value.tzinfo is None) != (epoch.tzinfo is None):
        lacking = "which has no time zone: it says no instant"
        return Refused(value, lacking if value.tzinfo is None else "whose time zone a local timestamp would lose")
    return _in_units(value, (value - epoch) // _MICROSECOND, unit)


def _in_units(value: object, microseconds: int, unit: int) -> int | Refused:
    units, rest = divmod(microseconds, unit)
    return Refused(value, "whose microseconds milliseconds would lose") if rest else units


def _number(value: Any, name: str) -> Any:
    """Avro's own number is taken too."""
    return value if isinstance(value, int) and not isinstance(value, bool) else Refused(value, f"which is no {name}")


_TYPES: dict[str, tuple[Prepare, Restore]] = {
    "bytes-decimal": (_decimal_to_bytes, _decimal_from_bytes),
    "fixed-decimal": (_decimal_to_bytes, _decimal_from_bytes),
    "string-uuid": (_uuid_to_text, LOGICAL_READERS["string-uuid"]),
    "fixed-uuid": (_uuid_to_bytes, lambda data, _schema, _reader: UUID(bytes=data)),
    "int-date": (_days, LOGICAL_READERS["int-date"]),
    "int-time-millis": (lambda value, _: _time(1000, value), LOGICAL_READERS["int-time-millis"]),
    "long-time-micros": (lambda value, _: _time(1, value), LOGICAL_READERS["long-time-micros"]),
}
for _unit, _per in (("millis", 1000), ("micros", 1)):
    for _name, _epoch in (("timestamp", _EPOCH), ("local-timestamp", _EPOCH_HERE)):
        _key = f"long-{_name}-{_unit}"
        _TYPES[_key] = (
            lambda value, _, per=_per, epoch=_epoch: _timestamp(per, epoch, value),  # type: ignore[misc]
            LOGICAL_READERS[_key],
        )
for _key, (_prepare, _restore) in _TYPES.items():
    _kind, _logical = _key.split("-", 1)
    LOGICAL_WRITERS[f"{_kind}-{_OURS}{_logical}"] = _prepare
    LOGICAL_READERS[f"{_kind}-{_OURS}{_logical}"] = _restore
