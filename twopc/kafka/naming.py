"""Transactional ids: `<prefix>-<subtask>-<slot>`, built and read here only.

The first slots of a subtask keep their ids over all attempts, so the broker remembers few of them, and opening them
fences whoever held them before. A slot that is added later carries the attempt in its number, so that it can't be
mistaken for one that a zombie of an earlier attempt added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twopc.protocol.ids import AttemptId, SubtaskIndex

FIRST_SLOTS = 3
"""Open, pre-committed, and committed but not yet followed by a later completed checkpoint."""

_SLOTS_PER_ATTEMPT = 1_000


@dataclass(frozen=True, slots=True)
class SlotName:
    """What a transactional id says."""

    subtask: SubtaskIndex
    slot: int

    def may_belong_to(self, attempt: AttemptId, parallelism: int) -> bool:
        """Whether a subtask of this attempt may be using the id."""
        if self.subtask >= parallelism:
            return False
        return self.slot < FIRST_SLOTS or self.slot // _SLOTS_PER_ATTEMPT == attempt


def added_slot(attempt: AttemptId, count: int) -> int:
    """Return the number of the slot that an attempt adds when it has `count` already."""
    return attempt * _SLOTS_PER_ATTEMPT + count


def transactional_id(prefix: str, subtask: SubtaskIndex, slot: int) -> str:
    return f"{prefix}-{subtask}-{slot}"


def parse_transactional_id(prefix: str, name: str) -> SlotName | None:
    """Return what the id says if it is exactly one of this prefix; None for every other, `<prefix>-x-0-0` included."""
    match = re.fullmatch(rf"{re.escape(prefix)}-([0-9]+)-([0-9]+)", name)
    return None if match is None else SlotName(SubtaskIndex(int(match[1])), int(match[2]))
