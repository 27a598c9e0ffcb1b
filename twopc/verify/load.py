"""A load that can be verified: every record says its key, its place among those of its key, and its checksum.

    key-17:42:xxxxxxxx...:9c0d3a51        key, sequence number from 0, filling, CRC-32 of all before it

The same numbers make the same records again, so a topic can be held against them without having been read before.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from zlib import crc32

from twopc.errors import ConfigurationError

_FILLING = b"x"
_LEAST = 48
"""Room for key, numbers, colons and checksum, whatever they are."""


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """One record of a load."""

    key: bytes
    sequence: int
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """A load as a value: so many records, dealt out at random to so many keys, each value of so many bytes."""

    topic: str
    records: int
    keys: int = 1_000
    size: int = 100
    seed: int = 0
    rate: int | None = None

    def __post_init__(self) -> None:
        if self.records < 0 or self.keys < 1:
            raise ConfigurationError(
                f"--records must be at least 0 and --keys at least 1, but they are {self.records} and {self.keys}"
            )
        if self.size < _LEAST:
            raise ConfigurationError(
                f"--size must be at least {_LEAST}, for key, sequence number and checksum, but is {self.size}"
            )
        if self.rate is not None and self.rate < 1:
            raise ConfigurationError(f"--rate must be at least 1 record a second, but is {self.rate}")

    def all(self) -> Iterator[LoadRecord]:
        """Yield every record in order. Eight bytes a key are kept, and nothing else."""
        rng = Random(self.seed)
        sequences = array("q", [0]) * self.keys
        for _ in range(self.records):
            number = int(rng.random() * self.keys)
            key, sequence = b"key-%d" % number, sequences[number]
            sequences[number] = sequence + 1
            yield LoadRecord(key, sequence, load_value(key, sequence, self.size))


def load_value(key: bytes, sequence: int, size: int) -> bytes:
    """Return the value of one record, of exactly this size."""
    head = b"%s:%d:" % (key, sequence)
    body = head.ljust(size - 9, _FILLING)
    return b"%s:%08x" % (body, crc32(body))


def read_load(value: bytes) -> LoadRecord:
    """Return what a value says of itself; raise ValueError if it is not a record of a load, or was changed."""
    body, colon, checksum = value.rpartition(b":")
    key, _, rest = body.partition(b":")
    sequence, _, _ = rest.partition(b":")
    if not (colon and sequence.isdigit()) or checksum != b"%08x" % crc32(body):
        raise ValueError(f"{value[:_LEAST]!r} is not a record of a load, or was changed")
    return LoadRecord(key, int(sequence), value)
