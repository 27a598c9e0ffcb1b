"""What was written to a state since its last whole snapshot, while that is little.

A snapshot is then the files of the whole one before, which are durable already, and one small file with what was
written since: an interval in which only positions moved costs RocksDB nothing.

Invariants: what `since_base` returns is all that was written since `restart`, or it returns None; the memory that is
held is bounded, however much is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twopc.errors import CheckpointCorrupted
from twopc.protocol.envelope import NOT_OF_THIS_SHAPE, decode_fact, encode_fact
from twopc.state.backend import Family

FILE_NAME = "changes.json"
MOST_KEYS = 1_000
MOST_BYTES = 64 * 1024
"""Beyond either RocksDB's own snapshot costs less than writing all of it again with every checkpoint."""

_KIND = "state-changes"

Items = Mapping[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class Changes:
    """The last value of every key that was written; None for one that was deleted."""

    families: Mapping[Family, Items]

    def encode(self) -> bytes:
        """Return the stored form."""
        return encode_fact(_KIND, {family.value: _listed(items) for family, items in self.families.items()})

    @classmethod
    def decode(cls, data: bytes, source: str) -> Changes:
        """Read the stored form; raise CheckpointCorrupted, naming `source`, for what `encode` does not write."""
        body = decode_fact(_KIND, data, source)
        try:
            return cls({Family(name): _parsed(items) for name, items in body.items()})
        except NOT_OF_THIS_SHAPE as error:
            raise CheckpointCorrupted(f"{source} does not hold changes of a state: {error!r}") from error


def changes_in(folder: Path) -> Changes | None:
    """Return the changes that a snapshot in this folder holds, None for none; raise CheckpointCorrupted."""
    path = folder / FILE_NAME
    try:
        return Changes.decode(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointCorrupted(f"{path} can't be read: {error.strerror}") from error


class ChangeLog:
    """Notes what is written, until it is too much."""

    def __init__(self) -> None:
        self._noted: dict[Family, dict[bytes, bytes | None]] | None = None
        self._bytes = 0

    def restart(self) -> None:
        """A whole snapshot is taken at this moment."""
        self._noted = {family: {} for family in Family}
        self._bytes = 0

    def give_up(self) -> None:
        """What is written can't be told key by key: only a whole snapshot holds it."""
        self._noted = None

    def note(self, family: Family, items: Sequence[tuple[bytes, bytes | None]]) -> None:
        """All these were written."""
        if self._noted is None:
            return
        self._bytes += sum([len(key) + len(value or b"") for key, value in items])
        self._noted[family].update(items)
        if self._bytes > MOST_BYTES:
            # Keys that were written again are counted twice.
            self._bytes = sum(
                len(key) + len(value or b"") for each in self._noted.values() for key, value in each.items()
            )
        if self._bytes > MOST_BYTES or sum(map(len, self._noted.values())) > MOST_KEYS:
            self.give_up()

    def since_base(self) -> Changes | None:
        """Return what was written since the last whole snapshot; None if there was none, or it was too much."""
        if self._noted is None:
            return None
        return Changes({family: dict(items) for family, items in self._noted.items()})


def _listed(items: Items) -> list[list[str | None]]:
    return [[key.hex(), None if value is None else value.hex()] for key, value in items.items()]


def _parsed(items: Sequence[Sequence[str | None]]) -> dict[bytes, bytes | None]:
    parsed: dict[bytes, bytes | None] = {}
    for key, value in items:
        if key is None:
            raise ValueError("a key is missing")
        parsed[bytes.fromhex(key)] = None if value is None else bytes.fromhex(value)
    return parsed
