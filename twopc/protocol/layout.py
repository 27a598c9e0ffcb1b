"""The names in a job's checkpoint folder; nowhere else are they put together or taken apart.

<checkpoint-dir>/<job>/ledger/000000000001.json     the coordinator's facts, numbered
<checkpoint-dir>/<job>/ledger/.twins/...            a second name for each of them
<checkpoint-dir>/<job>/chk-7/metadata.json          all that a restore of checkpoint 7 needs
<checkpoint-dir>/<job>/chk-7/subtask-0/             what subtask 0 stored for it, its manifest.json among that
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from twopc.protocol.ids import CheckpointId, SubtaskIndex

LEDGER = "ledger"
TWINS = f"{LEDGER}/.twins"
"""A second name for each ledger entry: where only that is left, the entry was lost, and is not merely not there yet."""

_ENTRY = re.compile(r"([0-9]{12})\.json")
_CHECKPOINT = re.compile(r"chk-([1-9][0-9]*)")
_METADATA = "metadata.json"


@lru_cache(2_048)
def entry_name(sequence: int) -> str:
    """The file name of one ledger entry."""
    return f"{sequence:012d}.json"


@lru_cache(2_048)
def entry_path(sequence: int) -> str:
    """One ledger entry, relative to the job's folder."""
    return f"{LEDGER}/{entry_name(sequence)}"


@lru_cache(2_048)
def entry_sequence(name: str) -> int | None:
    """The number of the ledger entry with this name, by itself or in its folder; None if it is not one."""
    match = _ENTRY.fullmatch(name.removeprefix(f"{LEDGER}/"))
    return int(match[1]) if match else None


def entry_sequences(names: Iterable[str]) -> list[int]:
    """The numbers of the ledger entries among these file names, ascending."""
    return sorted([number for number in map(entry_sequence, names) if number is not None])


def lost_entries(names: Iterable[str], twins: Iterable[str]) -> list[int]:
    """The entries after the last of a ledger, of which there is a second name only."""
    newest = max(entry_sequences(names), default=0)
    return [number for number in entry_sequences(twins) if number > newest]


def checkpoint_folder(checkpoint_id: CheckpointId) -> str:
    """The folder of one checkpoint."""
    return f"chk-{checkpoint_id}"


@lru_cache(2_048)
def checkpoint_of_folder(name: str) -> CheckpointId | None:
    """The checkpoint whose folder has this name; None if it is not one."""
    match = _CHECKPOINT.fullmatch(name)
    return CheckpointId(int(match[1])) if match else None


def metadata_path(checkpoint_id: CheckpointId) -> str:
    """The metadata file of one checkpoint, relative to the job's folder."""
    return f"{checkpoint_folder(checkpoint_id)}/{_METADATA}"


def checkpoint_of_metadata(name: str) -> CheckpointId | None:
    """The checkpoint whose metadata has this name, relative to the job's; None if it is not that."""
    folder, _, file = name.partition("/")
    return checkpoint_of_folder(folder) if file == _METADATA else None


def subtask_folder(checkpoint_id: CheckpointId, subtask: SubtaskIndex) -> str:
    """What one subtask stores for one checkpoint, relative to the job's folder."""
    return f"{checkpoint_folder(checkpoint_id)}/subtask-{subtask}"


MANIFEST = "manifest.json"
"""In what a subtask stored: the list of the files."""


def manifest_path(checkpoint_id: CheckpointId, subtask: SubtaskIndex) -> str:
    """The manifest of one subtask's snapshot, relative to the job's folder."""
    return f"{subtask_folder(checkpoint_id, subtask)}/{MANIFEST}"


LEDGER_FILE = f"{LEDGER}/{_ENTRY.pattern}"
"""What a path to an entry of a job's ledger matches."""

CHECKPOINT_FILE = rf"{_CHECKPOINT.pattern}/(?:subtask-[0-9]+/)?(?P<file>[^/]+)"
"""What a path to a file of a checkpoint matches."""
