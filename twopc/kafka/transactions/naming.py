"""Transactional ids: `<prefix>-<attempt>-<subtask>-<slot>`, built and read here only.

The attempt stands in every id, so no two attempts ever share one: whatever a process of an old attempt does, and
whenever, it can't take an id over that a newer attempt uses. An id is read back with its prefix known and exactly three
numbers behind it, so the ids of job `a` and of job `a-1` are never taken for each other's.

`<prefix>-<attempt>-claim` is written to by nobody: whoever initialises it first may use the attempt's number (0013).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from twopc.protocol.ids import AttemptId, SubtaskIndex

FIRST_SLOTS = 3
"""Open, pre-committed, and committed but not yet followed by a later completed checkpoint."""

_NUMBER = "(0|[1-9][0-9]{0,8})"


@dataclass(frozen=True, slots=True)
class SlotName:
    """The name of a slot, as a transactional id has it. `slot` counts from 0 in every subtask of every attempt."""

    attempt: AttemptId
    subtask: SubtaskIndex
    slot: int


def transactional_id(prefix: str, name: SlotName) -> str:
    """Return the id under which this slot's producer writes."""
    return f"{prefix}-{name.attempt}-{name.subtask}-{name.slot}"


def claim_id(prefix: str, attempt: AttemptId) -> str:
    """Return the id whose first initialisation claims the attempt's number."""
    return f"{prefix}-{attempt}-claim"


def parse_claim(prefix: str, text: str) -> AttemptId | None:
    """Return the attempt that the id claims if it is a claim of exactly this prefix."""
    match = re.fullmatch(rf"{re.escape(prefix)}-{_NUMBER}-claim", text)
    return None if match is None else AttemptId(int(match[1]))


@lru_cache(4_096)
def parse_transactional_id(prefix: str, text: str) -> SlotName | None:
    """Return what the id says if it is exactly one of this prefix; None for `<prefix>-x-1-0-0` and every other."""
    match = _form(prefix).fullmatch(text)
    if match is None:
        return None
    return SlotName(AttemptId(int(match[1])), SubtaskIndex(int(match[2])), int(match[3]))


@lru_cache
def _form(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(prefix)}-{_NUMBER}-{_NUMBER}-{_NUMBER}")
