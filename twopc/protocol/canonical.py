"""The one text of a JSON value: names in order, no spaces, ASCII only. Pure.

Digests are taken of it: `json` says what the text is, and `orjson`, which is quick, writes it wherever both write the
same. They differ in numbers with an exponent only (1e16, 1e+16), which are read back as the same number.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

_by_the_book = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def canonical(value: Any) -> bytes:
    """Return the text of a value of JSON."""
    try:
        text = orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        # It refuses what is not UTF-8, integers of more than 64 bits, and names that are no strings.
        return _by_the_book(value).encode()
    is_escaped_alike = text.isascii() and b"\x7f" not in text
    return text if is_escaped_alike else _by_the_book(value).encode()
