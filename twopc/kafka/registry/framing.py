"""The header of a value whose schema a registry keeps: a zero byte, and the schema's id (Confluent's wire format).

Protobuf has more behind it: which message of the file it is, as a list of indexes from the outermost message inwards.
A list of the one index 0, as most are, is a single zero byte.
"""

from __future__ import annotations

from collections.abc import Sequence

HEAD_SIZE = 5


def head_of(schema_id: int) -> bytes:
    """Return what stands before a value of this schema."""
    return b"\0" + schema_id.to_bytes(4, "big")


def schema_id_of(head: bytes) -> int:
    """Return the id of the schema; raise ValueError for bytes that do not begin with one."""
    if len(head) < HEAD_SIZE:
        raise ValueError(f"a value of a schema registry begins with 5 bytes, and these are {len(head)}")
    if head[0] != 0:
        raise ValueError(f"a value of a schema registry begins with a zero byte, and this one with {head[0]}")
    return int.from_bytes(head[1:HEAD_SIZE], "big")


def packed_indexes(indexes: Sequence[int]) -> bytes:
    """Return the bytes of a list of message indexes."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(map(_zigzag, (len(indexes), *indexes)))


def behind_indexes(data: bytes) -> bytes:
    """Return what is behind the list of message indexes that these bytes begin with."""
    count, at = _unzigzag(data, 0)
    for _ in range(count):
        _, at = _unzigzag(data, at)
    return data[at:]


def _zigzag(number: int) -> bytes:
    rest, packed = number << 1, bytearray()
    while rest > 0x7F:
        packed.append(rest & 0x7F | 0x80)
        rest >>= 7
    packed.append(rest)
    return bytes(packed)


def _unzigzag(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise ValueError("the bytes end, or go wrong, in the indexes of a message")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    if number & 1:
        raise ValueError("an index of a message is negative")
    return number >> 1, at
