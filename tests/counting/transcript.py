"""A transcript of a reader, small enough to keep for millions of records: two readers must have seen the same."""

from __future__ import annotations

from array import array
from collections import defaultdict
from zlib import crc32

from twopc.testing.topics import Read


class Transcript:
    """Offset and checksum of each record, by partition, in the order in which they were read."""

    def __init__(self) -> None:
        self._offsets: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._checksums: dict[int, array[int]] = defaultdict(lambda: array("L"))

    def note(self, read: Read) -> None:
        self._offsets[read.partition].append(read.offset)
        self._checksums[read.partition].append(crc32(b"%r %r" % (read.key, read.value)))

    def differences(self, other: Transcript) -> list[str]:
        """Where the two disagree: the first place in each partition."""
        found = []
        for partition in sorted({*self._offsets, *other._offsets}):
            mine = list(zip(self._offsets[partition], self._checksums[partition], strict=True))
            theirs = list(zip(other._offsets[partition], other._checksums[partition], strict=True))
            if mine == theirs:
                continue
            pairs = zip(mine, theirs, strict=False)
            place = next((index for index, (one, two) in enumerate(pairs) if one != two), min(len(mine), len(theirs)))
            found.append(f"partition {partition}, record {place}: {_at(mine, place)} here, {_at(theirs, place)} there")
        return found


def _at(seen: list[tuple[int, int]], place: int) -> str:
    return f"offset {seen[place][0]} ({seen[place][1]:08x})" if place < len(seen) else "nothing"
