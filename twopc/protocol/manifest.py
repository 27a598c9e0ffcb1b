"""The manifest of a snapshot: name, size and SHA-256 of each of its files, and how many keys they hold. Pure.

A file may be in the manifests of many checkpoints: it is alive as long as one of them is kept.

RocksDB doesn't notice all damage to its files; so nothing of a snapshot is opened before it agreed with its manifest,
and the manifest with the digest in the subtask's acknowledgement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from twopc.errors import CheckpointCorrupted, ForeignFile
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import decode_body, decode_fact, encode_fact
from twopc.protocol.facts import StateHandle
from twopc.protocol.layout import name_of_file

MANIFEST_KIND = "state-manifest"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a snapshot; `stored` is where it is, relative to the job's folder."""

    AS_LIST: ClassVar[bool] = True

    stored: str
    size_bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """The state's name for it."""
        return name_of_file(self.stored)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All files of a snapshot, in the order of their names. `key_count` is for people: RocksDB estimates it."""

    files: tuple[StoredFile, ...]
    key_count: int

    def __post_init__(self) -> None:
        """Raise CheckpointCorrupted for a name that may not become a path, and for one that stands there twice."""
        for file in self.files:
            if not file.name:
                raise CheckpointCorrupted(f"{file.stored!r} can't be the name of a file of a snapshot")
        if len(self.names) != len(self.files):
            raise CheckpointCorrupted("a manifest lists the same file twice")

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def names(self) -> frozenset[str]:
        """The state's names for them."""
        return frozenset(file.name for file in self.files)

    @classmethod
    def of(cls, files: Iterable[StoredFile], key_count: int) -> Manifest:
        """Make a manifest; raise CheckpointCorrupted as the constructor does."""
        return cls(tuple(sorted(files, key=lambda file: file.name)), key_count)

    def encode(self) -> bytes:
        """Return the stored form."""
        return encode_fact(MANIFEST_KIND, to_json(self))

    @classmethod
    def acknowledged(cls, data: bytes, handle: StateHandle, source: str) -> Manifest:
        """Read the manifest of an acknowledged snapshot; raise CheckpointCorrupted, ForeignFile for another's."""
        manifest = cls.decode(data, source)
        if hashlib.sha256(data).hexdigest() != handle.manifest_sha256:
            raise ForeignFile(f"{source} is whole, and not the manifest that the subtask acknowledged")
        return manifest

    @classmethod
    def decode(cls, data: bytes, source: str) -> Manifest:
        """Read the stored form; raise CheckpointCorrupted, naming `source`, for what `encode` does not write."""
        return decode_body(cls, decode_fact(MANIFEST_KIND, data, source), MANIFEST_KIND, source)
