"""Avro's binary form, byte by byte: the place in the bytes of a value, and numbers of variable length."""

from __future__ import annotations

import struct

INT = range(-(2**31), 2**31)
LONG = range(-(2**63), 2**63)

FLOAT = struct.Struct("<f")
DOUBLE = struct.Struct("<d")


class AvroError(ValueError):
    """A value that its type can't hold, or bytes that are none of it; says so by the name of the field."""


def named(field: str) -> str:
    """Return the name of a field for people; a type that is of no field has none."""
    return field or "the value"


class Input:
    """The bytes of one value, and the place in them."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int, field: str) -> bytes:
        """Return the next bytes, which are of this field."""
        start = self.at
        if not 0 <= length <= len(self.data) - start:
            raise AvroError(f"the bytes end within {named(field)}: they were written with another schema")
        self.at = start + length
        return self.data[start : self.at]

    def number(self, field: str) -> int:
        """Return the next number of variable length."""
        bits = shift = 0
        while True:
            byte = self.take(1, field)[0]
            bits |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise AvroError(f"{named(field)} is a number of more than 64 bits")
        if bits >> 64:
            raise AvroError(f"{named(field)} is a number of more than 64 bits")
        return bits >> 1 ^ -(bits & 1)


def put_number(out: bytearray, number: int) -> None:
    """Write a number of 64 bits, in as many bytes as it needs."""
    bits = number << 1 ^ number >> 63
    while bits > 0x7F:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    out.append(bits)


def put_piece(out: bytearray, data: bytes) -> None:
    """Write bytes, their length before them."""
    put_number(out, len(data))
    out += data
