"""The request with which a producer gets its id, as bytes: where its transactions' time-out stands in it. Pure."""

from __future__ import annotations

import struct

_HEADER = struct.Struct(">hhih")
"""API key, version, correlation id, length of the client's id."""
_TIMEOUT = struct.Struct(">i")
_FLEXIBLE = 2
"""From this version on strings are compact, and tagged fields may stand behind the header."""


def with_timeout(request: bytes, timeout_ms: int) -> bytes:
    """Return the InitProducerId request with another time-out, of the same length."""
    _, version, _, client_id = _HEADER.unpack_from(request)
    at = _HEADER.size + max(client_id, 0)
    if version < _FLEXIBLE:
        (length,) = struct.unpack_from(">h", request, at)
        at += 2 + max(length, 0)
    else:
        at = _behind_tags(request, at)
        length, at = _varint(request, at)
        at += max(length - 1, 0)
    return request[:at] + _TIMEOUT.pack(timeout_ms) + request[at + _TIMEOUT.size :]


def _behind_tags(request: bytes, at: int) -> int:
    count, at = _varint(request, at)
    for _ in range(count):
        _, at = _varint(request, at)
        length, at = _varint(request, at)
        at += length
    return at


def _varint(request: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint and where it ends."""
    value = shift = 0
    while True:
        byte = request[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
