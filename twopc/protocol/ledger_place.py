"""The place of a ledger entry: of which job, with which number, after which entry. Pure.

An entry that is whole, but of another job, of another number, or of another history than its neighbours, would replay
as facts that nobody stored. So each says where it belongs, and names the digest of the one before it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from twopc.errors import ForeignFile

NOTHING_BEFORE = ""


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """`previous` is the SHA-256 of the entry before, as it is stored; NOTHING_BEFORE in a job's first.

    `creator` tells who stored it, so that no two ever try to store the same bytes as an entry.
    """

    job: str
    number: int
    previous: str
    creator: str

    def check(self, job: str, number: int, before: bytes | None, source: str) -> None:
        """Raise CheckpointCorrupted unless this is the place of that entry; `before` is the entry before, if kept."""
        if self.job != job:
            raise ForeignFile(f"{source} belongs to job {self.job!r}: it was put here from elsewhere")
        if self.number != number:
            raise ForeignFile(f"{source} was stored as entry {self.number}: it was moved or copied")
        if before is not None and self.previous != digest_of_entry(before):
            raise ForeignFile(f"{source} does not follow the entry before it: one of the two was exchanged")


def digest_of_entry(data: bytes) -> str:
    """The digest that the next entry's place names."""
    return hashlib.sha256(data).hexdigest()
