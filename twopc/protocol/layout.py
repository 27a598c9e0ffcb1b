"""The names in a job's checkpoint folder; nowhere else are they put together or taken apart.

<checkpoint-dir>/<job>/ledger/000000000001.json     the coordinator's facts, numbered
<checkpoint-dir>/<job>/ledger/.twins/...            a second name for each of them
<checkpoint-dir>/<job>/chk-7/metadata.json          all that a restore of checkpoint 7 needs
<checkpoint-dir>/<job>/chk-7/subtask-0.json         the manifest of what subtask 0 stored for it: the names of its files
<checkpoint-dir>/<job>/files/7-0-3fa9c1d2-000012.sst   a file, first stored by subtask 0 for checkpoint 7, that never
                                                    changes; manifests of later checkpoints may name it too
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from twopc.protocol.ids import CheckpointId, SubtaskIndex

LEDGER = "ledger"
ENTRIES = f"{LEDGER}/"
"""The prefix of the names of ledger entries."""

TWINS = f"{LEDGER}/.twins"
"""A second name for each ledger entry: where only that is left, the entry was lost, and is not merely not there yet."""

CHECKPOINT_PREFIX = "chk-"
"""The prefix of the names of all that belongs to one checkpoint."""

_ENTRY = re.compile(r"([0-9]{12})\.json")
_CHECKPOINT = re.compile(r"chk-([1-9][0-9]*)")
_METADATA = "metadata.json"
_MANIFEST = re.compile(rf"{_CHECKPOINT.pattern}/subtask-[0-9]+\.json", re.ASCII)
FILES = "files"
_FILE = re.compile(rf"{FILES}/([1-9][0-9]*)-[0-9]+-[0-9a-f]+-([A-Za-z0-9][A-Za-z0-9._-]{{0,199}})", re.ASCII)


@lru_cache(2_048)
def entry_name(sequence: int) -> str:
    """The file name of one ledger entry."""
    return f"{sequence:012d}.json"


@lru_cache(2_048)
def entry_path(sequence: int) -> str:
    """One ledger entry, relative to the job's folder."""
    return ENTRIES + entry_name(sequence)


@lru_cache(2_048)
def entry_sequence(name: str) -> int | None:
    """The number of the ledger entry with this name, by itself or in its folder; None if it is not one."""
    match = _ENTRY.fullmatch(name.removeprefix(ENTRIES))
    return int(match[1]) if match else None


def entry_sequences(names: Iterable[str]) -> list[int]:
    """The numbers of the ledger entries among these file names, ascending."""
    return sorted([number for number in map(entry_sequence, names) if number is not None])


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
    """The folder of one subtask's snapshot for one checkpoint, relative to the job's folder."""
    return f"{checkpoint_folder(checkpoint_id)}/subtask-{subtask}"


def manifest_path(checkpoint_id: CheckpointId, subtask: SubtaskIndex) -> str:
    """The manifest of one subtask's snapshot, relative to the job's folder."""
    return manifest_of(subtask_folder(checkpoint_id, subtask))


def manifest_of(snapshot: str) -> str:
    """The manifest of the snapshot at this place."""
    return f"{snapshot}.json"


def is_manifest(name: str) -> bool:
    """Whether this is the manifest of some snapshot, relative to the job's folder."""
    return _MANIFEST.fullmatch(name) is not None


def stored_file(checkpoint_id: CheckpointId, subtask: SubtaskIndex, token: str, name: str) -> str:
    """A file that a subtask stores, relative to the job's folder; the token is another each time."""
    return f"{FILES}/{checkpoint_id}-{subtask}-{token}-{name}"


@lru_cache(2_048)
def checkpoint_of_file(stored: str) -> CheckpointId | None:
    """The checkpoint that a file was first stored for; None if this is not the name of one."""
    match = _FILE.fullmatch(stored)
    return CheckpointId(int(match[1])) if match else None


@lru_cache(2_048)
def name_of_file(stored: str) -> str:
    """The name by which the state knows a stored file; empty if this is not one."""
    match = _FILE.fullmatch(stored)
    return match[2] if match else ""


LEDGER_FILE = f"{ENTRIES}{_ENTRY.pattern}"
"""The pattern of a path to an entry of a job's ledger."""

CHECKPOINT_FILE = rf"{_CHECKPOINT.pattern}/(?:metadata|subtask-[0-9]+)\.json|{_FILE.pattern}"
"""The pattern of a path to a file of a checkpoint."""
