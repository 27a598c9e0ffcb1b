"""Avro's logical types: what is written reads back equal, and what can't is refused by the name of its field. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from random import Random
from typing import Any, ClassVar
from uuid import UUID

from twopc.errors import ConfigurationError
from twopc.serde.avro_binary import AvroError, Input, named
from twopc.serde.avro_type import Plan, Plans, Type

_EXACT = Context(prec=100_000)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_HERE = datetime(1970, 1, 1)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
_MICROSECOND = timedelta(microseconds=1)


class Logical(Type, ABC):
    """A type whose values stand for others; `base` has what is written."""

    logical: str

    def __init__(self, base: Type, field: str) -> None:
        super().__init__(field)
        self.base = base
        self.kind = base.kind

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def aliases(self) -> Collection[str]:
        return self.base.aliases

    @abstractmethod
    def restore(self, written: Any) -> Any:
        """Return what a value of the base stands for; raise AvroError where it stands for nothing."""

    @abstractmethod
    def prepare(self, value: Any) -> Any:
        """Return the value of the base that stands for a value; raise AvroError where none does."""

    def read(self, data: Input) -> Any:
        return self.restore(self.base.read(data))

    def write(self, value: Any, out: bytearray) -> None:
        self.base.write(self.prepare(value), out)

    def write_default(self, default: Any, out: bytearray) -> None:
        self.base.write_default(default, out)

    def plan(self, known: Plans) -> Plan | None:
        base = self.base.plan(known)
        return None if base is None else ("logical", (base,), 0, (self.restore, self.prepare))


class DecimalNumber(Logical):
    """The unscaled number, big-endian; its bytes may be written too."""

    logical = "decimal"
    classes = (Decimal,)

    def __init__(self, base: Type, field: str, schema: Mapping[str, Any]) -> None:
        super().__init__(base, field)
        self.precision, self.scale = int(schema.get("precision", 0)), int(schema.get("scale", 0))
        self.size = int(schema.get("size", 0))
        if self.precision < 1:
            raise ConfigurationError(f"the decimal {field or 'of the schema'} has no precision of at least 1")

    def restore(self, written: bytes) -> Decimal:
        unscaled = int.from_bytes(written, "big", signed=True)
        if abs(unscaled) >= 10**self.precision:
            raise AvroError(f"{named(self.field)} has more than the {self.precision} digits of its precision")
        return Decimal(unscaled).scaleb(-self.scale, _EXACT)

    def prepare(self, value: Any) -> bytes:
        if isinstance(value, bytes):
            self.restore(value)
            return value
        unscaled = self._unscaled(value)
        size = self.size or (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        try:
            return unscaled.to_bytes(size, "big", signed=True)
        except OverflowError:
            raise self.unfit(value, f"which has too many digits for {size} bytes") from None

    def example(self, chance: Random, depth: int) -> Decimal:
        held = len(str(256**self.size // 2)) - 1 if self.size else self.precision
        digits = min(self.precision, held)
        return Decimal(chance.randrange(10**digits)).scaleb(-self.scale, _EXACT)

    def _unscaled(self, value: Any) -> int:
        digits = f"precision {self.precision} and scale {self.scale}"
        if not isinstance(value, Decimal) or not value.is_finite():
            raise self.unfit(value, f"which is no finite Decimal of {digits}")
        if value and value.adjusted() + 1 + self.scale > self.precision:
            raise self.unfit(value, f"which has too many digits for {digits}")
        shifted = value.scaleb(self.scale, _EXACT)
        if shifted != shifted.to_integral_value():
            raise self.unfit(value, f"which has more digits behind the point than scale {self.scale} holds")
        return int(shifted)


class UuidText(Logical):
    """The text of a UUID, as UUIDs are written; that text may be written too."""

    logical = "uuid"
    classes = (UUID,)

    def restore(self, written: str) -> UUID:
        try:
            made = UUID(written)
        except ValueError:
            raise self.unfit(written, "which is no UUID") from None
        if str(made) != written:
            raise self.unfit(written, f"which would become {made}: leave logicalType out to have the text itself")
        return made

    def prepare(self, value: Any) -> str:
        if isinstance(value, UUID):
            return str(value)
        if not isinstance(value, str):
            raise self.unfit(value, "which is no UUID")
        self.restore(value)
        return value

    def example(self, chance: Random, depth: int) -> UUID:
        return UUID(int=chance.getrandbits(128))


class UuidBytes(Logical):
    """The 16 bytes of a UUID; they may be written too."""

    logical = "uuid"
    classes = (UUID,)

    def restore(self, written: bytes) -> UUID:
        return UUID(bytes=written)

    def prepare(self, value: Any) -> bytes:
        if isinstance(value, UUID):
            return value.bytes
        if not isinstance(value, bytes) or len(value) != 16:
            raise self.unfit(value, "which is no UUID")
        return value

    def example(self, chance: Random, depth: int) -> UUID:
        return UUID(int=chance.getrandbits(128))


class _Time(Logical):
    """A type that is a number, which may be written too where it stands for something."""

    word: ClassVar[str]

    def number(self, value: Any) -> int:
        """Return a value that is the number itself."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.unfit(value, f"which is no {self.word}")
        self.restore(value)
        return value

    def beyond(self, written: int) -> AvroError:
        """Return the error of a number that stands for nothing."""
        return self.unfit(written, f"which is beyond what a {self.word} holds")


class Date(_Time):
    """The number of a day."""

    logical = word = "date"
    classes = (date,)

    def restore(self, written: int) -> date:
        try:
            return date.fromordinal(written + _EPOCH_ORDINAL)
        except (ValueError, OverflowError):
            raise self.beyond(written) from None

    def prepare(self, value: Any) -> int:
        if isinstance(value, datetime):
            raise self.unfit(value, "whose time of day a date would lose: give its date()")
        return value.toordinal() - _EPOCH_ORDINAL if isinstance(value, date) else self.number(value)

    def is_own(self, value: Any) -> bool:
        return isinstance(value, date) and not isinstance(value, datetime)

    def example(self, chance: Random, depth: int) -> date:
        return date.fromordinal(chance.randint(1, date.max.toordinal()))


class TimeOfDay(_Time):
    """The milliseconds or microseconds since midnight."""

    logical = word = "time"
    classes = (time,)

    def __init__(self, base: Type, field: str, unit: int) -> None:
        super().__init__(base, field)
        self.unit = unit

    def restore(self, written: int) -> time:
        microseconds = written * self.unit
        if not 0 <= microseconds < _DAY:
            raise self.beyond(written)
        seconds, microsecond = divmod(microseconds, 1_000_000)
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, microsecond)

    def prepare(self, value: Any) -> int:
        if not isinstance(value, time):
            return self.number(value)
        if value.tzinfo is not None:
            raise self.unfit(value, "whose time zone would be lost")
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return _in_units(self, value, seconds * 1_000_000 + value.microsecond, self.unit)

    def example(self, chance: Random, depth: int) -> time:
        return self.restore(chance.randrange(_DAY // self.unit))


class Timestamp(_Time):
    """An instant, a datetime with a time zone; a local one has none."""

    word = "datetime"
    classes = (datetime,)

    def __init__(self, base: Type, field: str, unit: int, is_local: bool) -> None:
        super().__init__(base, field)
        self.unit = unit
        self.epoch = _EPOCH_HERE if is_local else _EPOCH
        self.logical = "local-timestamp" if is_local else "timestamp"

    def restore(self, written: int) -> datetime:
        try:
            return self.epoch + timedelta(microseconds=written * self.unit)
        except OverflowError:
            raise self.beyond(written) from None

    def prepare(self, value: Any) -> int:
        if not isinstance(value, datetime):
            return self.number(value)
        if (value.tzinfo is None) != (self.epoch.tzinfo is None):
            lacking = "which has no time zone: it says no instant"
            lost = "whose time zone a local timestamp would lose"
            raise self.unfit(value, lacking if value.tzinfo is None else lost)
        return _in_units(self, value, (value - self.epoch) // _MICROSECOND, self.unit)

    def example(self, chance: Random, depth: int) -> datetime:
        return self.restore(chance.randrange(2**55 // self.unit))


def logical(base: Type, schema: Mapping[str, Any], field: str) -> Type:
    """Return the logical type of a schema over its base; the base itself where none is known."""
    match base.kind, schema.get("logicalType"):
        case "bytes" | "fixed", "decimal":
            return DecimalNumber(base, field, schema)
        case "string", "uuid":
            return UuidText(base, field)
        case "fixed", "uuid" if schema["size"] == 16:
            return UuidBytes(base, field)
        case "int", "date":
            return Date(base, field)
        case ("int", "time-millis") | ("long", "time-micros"):
            return TimeOfDay(base, field, 1000 if base.kind == "int" else 1)
        case "long", "timestamp-millis" | "local-timestamp-millis" | "timestamp-micros" | "local-timestamp-micros":
            name = str(schema["logicalType"])
            return Timestamp(base, field, 1000 if name.endswith("millis") else 1, name.startswith("local"))
        case _:
            return base


def _in_units(of: Type, value: object, microseconds: int, unit: int) -> int:
    units, rest = divmod(microseconds, unit)
    if rest:
        raise of.unfit(value, "whose microseconds milliseconds would lose")
    return units
