"""A dead letter as it stands in its topic, and the mark of one that was replayed. Pure.

Connect's own dead letters have the same headers, so they are read too. What a letter lacks is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from twopc.kafka.letter import PREFIX, SHORTENED, TIMESTAMP, Header
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import Position, TopicPartition

REPLAYED = "__twopc.replayed"
"""The header of a record that was a dead letter, and of the mark that says so: where the letter stands."""


@dataclass(frozen=True, slots=True)
class FoundLetter:
    """One letter: the record as it was read, and the texts of what went wrong with it, by name without the prefix."""

    place: Place
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp: int | None
    texts: dict[str, str]
    shortened: str = ""

    @property
    def origin(self) -> Place | None:
        """Where the record stands that went wrong; None where the letter does not say so."""
        return Place.of_texts(self.text("topic"), self.text("partition"), self.text("offset"))

    def text(self, name: str) -> str:
        """Return one of the texts, empty where the letter lacks it."""
        return self.texts.get(name, "")


def letter_of(message: Any) -> FoundLetter | None:
    """Return the letter that a record is, None where it is none."""
    headers: Iterable[Header] = message.headers() or ()
    texts = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="backslashreplace")
        for name, value in headers
        if name.startswith(PREFIX)
    }
    if not texts:
        return None
    own = tuple(header for header in headers if not header[0].startswith(PREFIX))
    shortened = texts.pop(SHORTENED.removeprefix(PREFIX), "")
    kind, stamp = message.timestamp()
    refused = texts.pop(TIMESTAMP.removeprefix(PREFIX), "")
    timestamp = int(refused) if refused.lstrip("-").isdecimal() else stamp if kind else None
    place = Place(TopicPartition(message.topic(), message.partition()), Position(message.offset()))
    return FoundLetter(place, message.key(), message.value(), own, timestamp, texts, shortened)


def mark_of(message: Any) -> Place | None:
    """Return which letter of this topic a record says to be replayed, None where it says nothing."""
    if message.value() is not None or message.key() is not None:
        return None
    marks = [value for name, value in message.headers() or () if name == REPLAYED]
    return Place.parse(marks[0].decode(errors="replace")) if len(marks) == 1 and marks[0] else None
