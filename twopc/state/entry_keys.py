"""Where one entry of a list or map is: behind the key of the stream that the list or map belongs to.

    0x00 in the key of the stream is 0x00 0xFF, 0x00 0x01 ends it, and the entry's own key follows:
    of a map its key, encoded; of a list its number (8 bytes, big-endian), greater than those before it

So entries have the order of the keys that they belong to, and no key's entries are among another's. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import groupby

_END = b"\0\x01"
_NUMBER = struct.Struct(">Q")


def escaped(key: bytes) -> bytes:
    """Return a key of a stream, or the beginning of one, as it stands before its entries."""
    return key.replace(b"\0", b"\0\xff")


def entries_prefix(key: bytes) -> bytes:
    """Return what all entries of this key begin with, and no others."""
    return escaped(key) + _END


def parted(stored: bytes) -> tuple[bytes, bytes]:
    """Return what the entries of its key begin with, and the entry's own key."""
    end = stored.index(_END) + len(_END)
    return stored[:end], stored[end:]


def number_key(number: int) -> bytes:
    """Return the own key of an element of a list."""
    return _NUMBER.pack(number)


Entry = tuple[bytes, bytes]
"""The own key of an entry, and its value, as they are stored."""


def by_key(stored: Iterable[Entry]) -> Iterator[tuple[bytes, list[Entry]]]:
    """Yield each key of the stream with its entries, from what is stored in the order of stored keys."""
    parts = ((*parted(key), value) for key, value in stored)
    for prefix, entries in groupby(parts, key=lambda each: each[0]):
        key = prefix.removesuffix(_END).replace(b"\0\xff", b"\0")
        yield key, [(own, value) for _, own, value in entries]
