"""Keys that go to output partitions of their own: what one subtask writes, no other writes beside it.

A transaction of one subtask hides what another has committed after it in the same partition. Where each output
partition has one writer, a reader that is caught up must see whole transactions only, and the soak can say so.
"""

from __future__ import annotations

from itertools import count

from twopc.kafka.topics.partitioner import partition_for


def keys_for(number: int, partitions: int) -> tuple[bytes, ...]:
    """So many keys; the one with index i goes, in an output topic, to partitions that are i modulo `partitions`."""
    candidates = (b"k%d" % each for each in count())
    found: list[bytes] = []
    while len(found) < number:
        key = next(key for key in candidates if partition_for(key, partitions) == len(found) % partitions)
        found.append(key)
    return tuple(found)
