"""The changes of a state since its last whole snapshot, or since it was empty, while they are few.

Since a whole snapshot: the next one is the files of that, which are durable already, and one small file with what was
written since; an interval in which only positions moved costs RocksDB nothing. Since it was empty: this is the whole
state, which can stand in the checkpoint's metadata, without a file of its own.

Invariants: what `since_base` returns is all that was written since `begin` or `restart`, or it returns None; the memory
that is held is bounded, however much is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twopc.errors import CheckpointCorrupted
from twopc.protocol.codec import Mismatch, from_json, to_json
from twopc.protocol.envelope import decode_fact, encode_fact
from twopc.state.backend import Family

FILE_NAME = "changes.json"
WHOLE_FILE_NAME = "whole.json"
MOST_KEYS = 1_000
MOST_BYTES = 64 * 1024
"""Beyond either RocksDB's own snapshot costs less than writing all of it again with every checkpoint."""

_KIND = "state-changes"
_WHOLE_KIND = "whole-state"

Items = Mapping[bytes, bytes | None]
Families = Mapping[Family, Items]


@dataclass(frozen=True, slots=True)
class Changes:
    """The last value of every key that was written; None for one that was deleted.

    If `is_whole`, nothing had been written before: these are all items of the state.
    """

    families: Families
    is_whole: bool = False

    @property
    def size_bytes(self) -> int:
        """The length of all keys and values."""
        return sum(_size(items.items()) for items in self.families.values())

    @property
    def items(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        items: dict[str, Any] = to_json(self.families, Families)
        return items

    def encode(self) -> bytes:
        """Return the stored form."""
        return encode_fact(_WHOLE_KIND if self.is_whole else _KIND, self.items)

    @classmethod
    def of_json(cls, items: Any, source: str, *, is_whole: bool) -> Changes:
        """Read what `items` returned; raise CheckpointCorrupted, naming `source`, for anything else."""
        try:
            return cls(from_json(Families, items), is_whole)
        except Mismatch as error:
            raise CheckpointCorrupted(f"{source} does not hold items of a state: {error}") from error


def changes_in(folder: Path) -> Changes | None:
    """Return the changes that a snapshot in this folder holds, None for none; raise CheckpointCorrupted."""
    return _stored_in(folder / FILE_NAME, _KIND, is_whole=False)


def whole_state_in(folder: Path) -> Changes | None:
    """Return the state that stood in the metadata and was brought to this folder, None for none; as `changes_in`."""
    return _stored_in(folder / WHOLE_FILE_NAME, _WHOLE_KIND, is_whole=True)


def _stored_in(path: Path, kind: str, *, is_whole: bool) -> Changes | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointCorrupted(f"{path} can't be read: {error.strerror}") from error
    return Changes.of_json(decode_fact(kind, data, str(path)), str(path), is_whole=is_whole)


class ChangeLog:
    """Notes what is written, until it is too much."""

    def __init__(self) -> None:
        self._noted: dict[Family, dict[bytes, bytes | None]] | None = None
        self._bytes = 0
        self._is_whole = False

    def begin(self) -> None:
        """The state is empty."""
        self._begin_noting()
        self._is_whole = True

    def restart(self) -> None:
        """A whole snapshot is taken at this moment."""
        self._begin_noting()
        self._is_whole = False

    def _begin_noting(self) -> None:
        self._noted = {family: {} for family in Family}
        self._bytes = 0

    def give_up(self) -> None:
        """What is written can't be told key by key: only a whole snapshot holds it."""
        self._noted = None

    @property
    def is_noting(self) -> bool:
        """Whether it has not been too much so far."""
        return self._noted is not None

    def note(self, family: Family, items: Sequence[tuple[bytes, bytes | None]]) -> None:
        """All these were written."""
        if self._noted is None:
            return
        self._bytes += _size(items)
        noted = self._noted[family]
        noted.update(items)
        if self._is_whole:
            # A key may come twice: the last counts, as in the backend.
            for key in [key for key, value in items if value is None and noted.get(key, b"") is None]:
                noted.pop(key, None)
        if self._bytes > MOST_BYTES:
            # Keys that were written again are counted twice.
            self._bytes = sum(_size(each.items()) for each in self._noted.values())
        if self._bytes > MOST_BYTES or sum(map(len, self._noted.values())) > MOST_KEYS:
            self.give_up()

    def note_prefix_deleted(self, family: Family, prefix: bytes) -> None:
        """Every key that starts with this was deleted, and only of a whole state it is known which those are."""
        if self._noted is None:
            return
        if not self._is_whole:
            self.give_up()
            return
        noted = self._noted[family]
        self._noted[family] = {key: value for key, value in noted.items() if not key.startswith(prefix)}

    def since_base(self) -> Changes | None:
        """Return what was written since `begin` or `restart`; None if there was neither, or it was too much."""
        if self._noted is None:
            return None
        return Changes({family: dict(items) for family, items in self._noted.items()}, self._is_whole)


def _size(items: Iterable[tuple[bytes, bytes | None]]) -> int:
    return sum([len(key) + len(value or b"") for key, value in items])
