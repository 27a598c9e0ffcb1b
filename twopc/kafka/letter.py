"""A dead letter that fits: what is too long for the producer is shortened, and a header says what that was. Pure.

The stack trace and the message go first, then the end of the value, the last headers of the record, and the key's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

PREFIX = "__connect.errors."

SHORTENED = PREFIX + "shortened"
"""The header that says what was shortened, with how long it was. Connect has none such."""

TIMESTAMP = PREFIX + "timestamp"
"""The header with the record's time, in Unix milliseconds, where the topic refuses that. Connect has none such."""

LARGEST_BYTES = 1_000_000
"""The largest record that a producer takes, unless its properties say otherwise: librdkafka's message.max.bytes."""

RESERVED_BYTES = 1_000
"""Of those, what the record's own frame takes, and the header that says what was shortened."""

HEADER_BYTES = 20
"""What a header takes beside its name and value, at most."""

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter in its parts: the record's key, value and headers, and the texts of what went wrong, by name."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    texts: Mapping[str, bytes]
    shortened: tuple[str, ...] = ()

    @property
    def all_headers(self) -> list[Header]:
        """The headers as they are written: the record's own first."""
        marks = [(SHORTENED, ", ".join(self.shortened).encode())] if self.shortened else []
        return [*self._headers, *marks]

    @property
    def size(self) -> int:
        """How many bytes it has, without its frame and the header that says what was shortened."""
        return _size(self.key) + _size(self.value) + sum(map(_header_size, self._headers))

    @property
    def _headers(self) -> list[Header]:
        return [*self.headers, *((PREFIX + name, text) for name, text in self.texts.items())]

    def without_illegal_headers(self) -> Letter:
        """Leave out headers whose names no client writes."""
        kept = tuple(header for header in self.headers if _is_legal(header[0]))
        left_out = len(self.headers) - len(kept)
        if not left_out:
            return self
        return replace(self, headers=kept, shortened=(*self.shortened, f"{left_out} headers with illegal names"))

    def fitted(self, largest: int) -> Letter:
        """Return the letter as a producer takes it whose largest record has so many bytes."""
        letter = self
        for shorten in _SHORTENING:
            excess = letter.size - (largest - RESERVED_BYTES)
            if excess <= 0:
                break
            letter = shorten(letter, excess)
        return letter


def _text(name: str) -> Callable[[Letter, int], Letter]:
    def shorten(letter: Letter, excess: int) -> Letter:
        text = letter.texts[name]
        texts = {**letter.texts, name: text[: max(0, len(text) - excess)]}
        return replace(letter, texts=texts, shortened=(*letter.shortened, _shortening(name, text)))

    return shorten


def _value(letter: Letter, excess: int) -> Letter:
    value = letter.value
    if value is None or not _size(value):
        return letter
    return replace(
        letter, value=value[: max(0, len(value) - excess)], shortened=(*letter.shortened, _shortening("value", value))
    )


def _headers(letter: Letter, excess: int) -> Letter:
    kept = list(letter.headers)
    while kept and excess > 0:
        excess -= _header_size(kept.pop())
    left_out = len(letter.headers) - len(kept)
    if not left_out:
        return letter
    return replace(letter, headers=tuple(kept), shortened=(*letter.shortened, f"the last {left_out} headers"))


def _key(letter: Letter, excess: int) -> Letter:
    key = letter.key
    if not key:
        return letter
    return replace(letter, key=key[: max(0, len(key) - excess)], shortened=(*letter.shortened, _shortening("key", key)))


_SHORTENING: Iterable[Callable[[Letter, int], Letter]] = (
    _text("exception.stacktrace"),
    _text("exception.message"),
    _value,
    _headers,
    _key,
)


def _shortening(name: str, whole: bytes) -> str:
    return f"{name} of {len(whole)} bytes"


def _size(data: object) -> int:
    # A source that is not Kafka's may hand over something else, which no topic takes.
    return len(data) if isinstance(data, bytes) else 0


def _header_size(header: Header) -> int:
    name, value = header
    return HEADER_BYTES + len(name.encode(errors="replace")) + _size(value)


def _is_legal(name: str) -> bool:
    try:
        return b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False
