"""Records to write, from lines: text, or the JSON that `twopc topics read -o json` prints."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from twopc.errors import ConfigurationError

TIMESTAMP_MAX = 2**63 - 1
_PLACE = frozenset({"topic", "partition", "offset"})
_FIELDS = _PLACE | {"timestamp", "key", "key_base64", "value", "value_base64", "headers"}

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write; `timestamp` is Unix milliseconds, None for the time at which it is written."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class TextLines:
    """Each line is a value; with a `separator` a key stands in front of its first one."""

    separator: bytes | None = None

    def record(self, line: bytes) -> NewRecord:
        """Return the record of a line; raise ValueError where the separator is wanting."""
        if self.separator is None:
            return NewRecord(line)
        key, found, value = line.partition(self.separator)
        if not found:
            raise ValueError(f"it has no {self.separator.decode()!r} between key and value (--separator)")
        return NewRecord(value, key)


class JsonLines:
    """Each line is an object with `value`, and `key`, `headers`, `timestamp` if wanted.

    Key and value are text, or null, or any other JSON, which is written as compact JSON; bytes stand as base64 in
    `key_base64` and `value_base64`. The place that a record was read at says nothing of where it is written.
    """

    def record(self, line: bytes) -> NewRecord:
        """Return the record of a line; raise ValueError, which says what is wrong with it."""
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError('it is no object, as in {"key": "a", "value": "1"}')
        if unknown := sorted(row.keys() - _FIELDS):
            raise ValueError(f"it has {', '.join(map(repr, unknown))}: take {', '.join(sorted(_FIELDS - _PLACE))}")
        if not row.keys() & {"value", "value_base64"}:
            raise ValueError("it has no 'value' (null for none)")
        return NewRecord(_data(row, "value"), _data(row, "key"), _headers(row.get("headers")), _timestamp(row))


def records(lines: Iterable[bytes], form: TextLines | JsonLines, extra: NewRecord) -> Iterator[NewRecord]:
    """Yield the record of each line, with the headers of `extra`, and its key where a record has none.

    Raise ConfigurationError, with the number of the line, for one that says none; empty lines of JSON say nothing.
    """
    for number, line in enumerate(lines, start=1):
        bare = line.removesuffix(b"\n").removesuffix(b"\r")
        if isinstance(form, JsonLines) and not bare.strip():
            continue
        try:
            record = form.record(bare)
        except ValueError as error:
            raise ConfigurationError(f"line {number} can't be written: {error}") from error
        yield replace(
            record, key=extra.key if record.key is None else record.key, headers=(*record.headers, *extra.headers)
        )


def header_of(text: str) -> Header:
    """Return the header that NAME=VALUE says."""
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise ConfigurationError(f"--header {text!r} is not NAME=VALUE, as in trace=7")
    return name, value.encode()


def _data(row: Mapping[str, Any], name: str) -> bytes | None:
    if (encoded := row.get(f"{name}_base64")) is not None:
        if name in row:
            raise ValueError(f"it has both {name!r} and '{name}_base64'")
        if not isinstance(encoded, str):
            raise ValueError(f"its {name}_base64 is no text")
        return b64decode(encoded, validate=True)
    data = row.get(name)
    if data is None:
        return None
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.encode()


def _headers(given: Any) -> tuple[Header, ...]:
    if given is None:
        return ()
    rows = [{"name": name, "value": value} for name, value in given.items()] if isinstance(given, dict) else given
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("name"), str) for row in rows
    ):
        raise ValueError('its headers are neither {"trace": "7"} nor [{"name": "trace", "value": "7"}]')
    return tuple((row["name"], _data(row, "value")) for row in rows)


def _timestamp(row: Mapping[str, Any]) -> int | None:
    stamp = row.get("timestamp")
    if stamp is None or (type(stamp) is int and 0 < stamp <= TIMESTAMP_MAX):
        return stamp
    raise ValueError(f"its timestamp must be Unix milliseconds, a whole number above 0, not {stamp!r}")
