"""Which partition a key belongs to, as Java's clients have it, and ours (`murmur2_random` in their settings)."""

from __future__ import annotations

from kafka.partitioner.default import murmur2


def partition_for(key: bytes, partitions: int) -> int:
    """Return the number of the partition, of so many, that records of this key are written to."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions
