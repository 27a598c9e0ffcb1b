"""Every key of stored state, formatted and parsed here and nowhere else; and which names may become paths.

    keyed key      partition prefix | length of name (2) | state name (UTF-8) | user key
    position key   split id (UTF-8)
    operator key   state name (UTF-8)
    partition      operator prefix | partition number (4)
    operator       length of operator id (2) | operator id (UTF-8)

Invariants:

- Lengths come first, big-endian, so no operator's prefix, no partition's and no state's is the beginning of another's:
  a scan by prefix finds the keys of that operator, partition or state, and no others.
- A path or file name that is let through can't lead out of the job's checkpoint folder
  (`twopc.protocol.layout` makes the paths).
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.ids import CheckpointId, SubtaskIndex

_SHORT = struct.Struct(">H")
_NUMBER = struct.Struct(">I")
_NUMERAL = r"(0|[1-9][0-9]{0,18})"
_SNAPSHOT_PATH = re.compile(f"chk-{_NUMERAL}/subtask-{_NUMERAL}", re.ASCII)


STREAM_TIME, TIMERS, EXPIRIES, TOLD, ELEMENTS = "$stream-time", "$timers", "$expiries", "$told", "$elements"
OPEN_WINDOWS, ROWS = "$open-windows", "$rows"
"""States that operators keep beside those that a job declares, whose names can't begin so."""


class StateName(NamedTuple):
    """One state by key of one operator. People write the operator alone where its only state has the same name."""

    operator: str
    name: str

    def __str__(self) -> str:
        return self.operator if self.operator == self.name else self.path

    @property
    def path(self) -> str:
        """Operator and state, also where both have the same name."""
        return f"{self.operator}/{self.name}"

    @property
    def is_declared(self) -> bool:
        """Whether a job declares it; others operators keep beside those."""
        return not self.name.startswith("$")

    @classmethod
    def parse(cls, text: str) -> StateName:
        """Return the state of which this is the text."""
        operator, slash, name = text.partition("/")
        return cls(operator, name if slash else operator)


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


def operator_prefix(operator: str) -> bytes:
    """Return what all keyed state of this operator starts with."""
    return _sized("operator id", operator)


def partition_prefix(operator: str, partition: int) -> bytes:
    """Return what all keyed state of this operator and partition number starts with."""
    return operator_prefix(operator) + _NUMBER.pack(partition)


def state_prefix(state: StateName, partition: int) -> bytes:
    """Return what all keys of this state and partition number start with; a user key behind it makes a keyed key."""
    return partition_prefix(state.operator, partition) + _sized("state name", state.name)


def parse_keyed_key(key: bytes) -> tuple[StateName, int, bytes]:
    """Return state, partition number and user key."""
    try:
        operator, rest = _take_sized(key)
        (partition,) = _NUMBER.unpack_from(rest)
        name, user_key = _take_sized(rest[_NUMBER.size :])
    except (struct.error, ValueError) as error:
        raise CheckpointCorrupted(f"keyed state holds a key that this program did not write: {key[:64]!r}") from error
    return StateName(operator, name), partition, user_key


def position_key(split: str) -> bytes:
    """Return the key of a split's position."""
    return split.encode()


def parse_position_key(key: bytes) -> str:
    """Return the id of the split whose position is stored under this key."""
    try:
        return key.decode()
    except ValueError as error:
        raise CheckpointCorrupted(f"positions hold a key that this program did not write: {key[:64]!r}") from error


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
