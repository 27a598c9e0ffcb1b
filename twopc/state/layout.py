"""Every key of stored state, formatted and parsed here and nowhere else; and which names may become paths.

    keyed key      partition prefix | length of name (2) | state name (UTF-8) | user key
    position key   split id (UTF-8)
    operator key   state name (UTF-8)
    partition      length of topic (2) | topic (UTF-8) | partition number (4)

Invariants:

- Lengths come first, big-endian, so no partition's prefix, and no state's, is the beginning of another's: a scan by
  prefix finds the keys of that partition or state, and no others.
- A path or file name that is let through can't lead out of the job's checkpoint folder
  (`twopc.protocol.layout` makes the paths).
"""

from __future__ import annotations

import re
import struct

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.kafka.topic_partition import TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId, SubtaskIndex

_SHORT = struct.Struct(">H")
_NUMBER = struct.Struct(">I")
_NUMERAL = r"(0|[1-9][0-9]{0,18})"
_SNAPSHOT_PATH = re.compile(f"chk-{_NUMERAL}/subtask-{_NUMERAL}", re.ASCII)


def _sized(kind: str, text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > 0xFFFF:
        raise ConfigurationError(f"{kind} {text[:40]!r}... is {len(encoded)} bytes long; the longest allowed is 65535")
    return _SHORT.pack(len(encoded)) + encoded


def _take_sized(key: bytes) -> tuple[str, bytes]:
    (size,) = _SHORT.unpack_from(key)
    end = _SHORT.size + size
    if end > len(key):
        raise ValueError("key is shorter than it says")
    return key[_SHORT.size : end].decode(), key[end:]


def _take_partition(key: bytes) -> tuple[TopicPartition, bytes]:
    topic, rest = _take_sized(key)
    (number,) = _NUMBER.unpack_from(rest)
    return TopicPartition(topic, number), rest[_NUMBER.size :]


def partition_prefix(partition: TopicPartition) -> bytes:
    """Return what all keyed state of this partition starts with."""
    return _sized("topic", partition.topic) + _NUMBER.pack(partition.partition)


def state_prefix(partition: TopicPartition, name: str) -> bytes:
    """Return what all keys of this state in this partition start with; a user key appended to it makes a keyed key."""
    return partition_prefix(partition) + _sized("state name", name)


def parse_keyed_key(key: bytes) -> tuple[TopicPartition, str, bytes]:
    """Return partition, state name and user key."""
    try:
        partition, rest = _take_partition(key)
        name, user_key = _take_sized(rest)
    except (struct.error, ValueError) as error:
        raise CheckpointCorrupted(f"keyed state holds a key that this program did not write: {key[:64]!r}") from error
    return partition, name, user_key


def position_key(split: str) -> bytes:
    """Return the key of a split's position."""
    return split.encode()


def parse_position_key(key: bytes) -> str:
    """Return the id of the split whose position is stored under this key."""
    try:
        return key.decode()
    except ValueError as error:
        raise CheckpointCorrupted(f"positions hold a key that this program did not write: {key[:64]!r}") from error


def keyed_partition(held: SplitPosition) -> TopicPartition:
    """Return the partition with which the keyed state of a split's rows is kept."""
    return TopicPartition(held.split.removesuffix(f"[{held.partition}]"), held.partition)


def operator_key(name: str) -> bytes:
    """Return the key of one operator's own state."""
    return name.encode()


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the smallest key greater than all that start with `prefix`; None if there is no such key."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def parse_snapshot_path(path: str) -> tuple[CheckpointId, SubtaskIndex]:
    """Return checkpoint and subtask of a snapshot's path; refuse any path that isn't exactly one."""
    match = _SNAPSHOT_PATH.fullmatch(path)
    if match is None:
        raise CheckpointCorrupted(f"a checkpoint names {path!r} as a snapshot's place; such a place is chk-N/subtask-N")
    return CheckpointId(int(match[1])), SubtaskIndex(int(match[2]))
