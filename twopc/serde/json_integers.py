"""Integers of JSON that 64 bits can't hold: orjson would read the nearest floating-point number, and say nothing."""

from __future__ import annotations

import json

_LOW, _HIGH = -(2**63), 2**64 - 1
_TOGETHER = 64
# Such an integer has 20 digits, or 19 and a sign: every second of them is ten. Of a fraction of 17 digits it is nine.
_STEP = 2
_SAMPLED = b"0" * 10
_LONG = b"0" * 20
_SHAPE = bytes(ord("0") if chr(byte) in "-0123456789" else ord(" ") for byte in range(256))


def may_have_beyond(texts: list[bytes | None]) -> bool:
    """Whether one of these texts may hold such an integer: quick, and seldom wrong."""
    return any(_has_long(_joined(texts[at : at + _TOGETHER])) for at in range(0, len(texts), _TOGETHER))


def refuse_beyond(text: bytes) -> None:
    """Raise ValueError for a text that holds such an integer; it is JSON."""
    if len(text) >= 20 and _has_long(text):
        json.loads(text, parse_int=_bounded)


def _joined(texts: list[bytes | None]) -> bytes:
    return b" ".join([text for text in texts if text is not None])


def _has_long(text: bytes) -> bool:
    return _SAMPLED in text[::_STEP].translate(_SHAPE) and _LONG in text.translate(_SHAPE)


def _bounded(digits: str) -> int:
    # Python refuses to make a number of thousands of digits.
    number = int(digits[:21])
    if not _LOW <= number <= _HIGH:
        raise ValueError(f"the integer {digits[:60]} is beyond 64 bits, and Json would round it: write it as text")
    return number
