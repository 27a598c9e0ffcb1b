"""Numbers as Kafka's own serdes encode them: big-endian, of a fixed size, and None as a tombstone."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from twopc.serde.base import Serde


class _Integer(Serde):
    form: ClassVar[struct.Struct]
    bounds: ClassVar[tuple[int, int]]

    def deserialize(self, data: bytes | None) -> int | None:
        return None if data is None else int(_unpacked(self, self.form, data))

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if type(value) is not int:
            raise _no_number(self, "int", value)
        try:
            return self.form.pack(value)
        except struct.error:
            low, high = self.bounds
            raise ValueError(f"the serde is {self}, so a value must be from {low} to {high}, not {value}") from None


class Int(_Integer):
    """An integer of 32 bits, as Kafka's IntegerSerializer writes it."""

    form = struct.Struct(">i")
    bounds = (-(2**31), 2**31 - 1)


class Long(_Integer):
    """An integer of 64 bits, as Kafka's LongSerializer writes it."""

    form = struct.Struct(">q")
    bounds = (-(2**63), 2**63 - 1)


class _Real(Serde):
    form: ClassVar[struct.Struct]

    def deserialize(self, data: bytes | None) -> float | None:
        if data is None:
            return None
        value = float(_unpacked(self, self.form, data))
        if value != value and self.form.pack(value) != data:
            raise ValueError(
                f"the serde is {self}, and {data.hex()} is a signalling NaN, of which Python makes another"
            )
        return value

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if type(value) is not float and type(value) is not int:
            raise _no_number(self, "float", value)
        try:
            data = self.form.pack(float(value))
        except OverflowError:
            raise ValueError(f"the serde is {self}, so a value must not be as large as {value!r}") from None
        if type(value) is int and self.form.unpack(data)[0] != value:
            raise ValueError(f"the serde is {self}, and no floating-point number of its size is {value!r}")
        return data


class Float(_Real):
    """A floating-point number of 32 bits, the nearest to the value, as Kafka's FloatSerializer writes it."""

    form = struct.Struct(">f")


class Double(_Real):
    """A floating-point number of 64 bits, as Kafka's DoubleSerializer writes it."""

    form = struct.Struct(">d")


def _unpacked(serde: Serde, form: struct.Struct, data: bytes) -> Any:
    if len(data) != form.size:
        raise ValueError(f"the serde is {serde}, so a value has {form.size} bytes, not {len(data)}")
    return form.unpack(data)[0]


def _no_number(serde: Serde, kind: str, value: object) -> TypeError:
    return TypeError(f"the serde is {serde}, so a value must be {kind} or None, not {type(value).__name__}")
