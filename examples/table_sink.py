"""Exactly-once output to a table, and the model for a sink with a global committer.

The table is a folder with one manifest, which names the data files of the table, and nothing else is in the table.
Subtasks write data files; once a checkpoint, the driver replaces the manifest in one step by one that names theirs too.
So a reader sees the output of whole checkpoints, of all subtasks, whenever it looks. The duties of such a sink:

    begin           open a data file under a name that no other transaction ever has
    pre_commit      bring it to the disk; no manifest names it yet
    commit          nothing: the global committer commits for all subtasks
    TableCommitter  replace the manifest; done again, it finds its checkpoint in there
    recover         on the driver, after a crash: say which data files are whole, and which are lost
    abort           remove the open file; abort_lingering: what earlier attempts left, and no manifest names

The folder must be one that the driver and every worker see under the same path.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from twopc import Batch, ConfigurationError, Json
from twopc.connect import (
    CheckpointId,
    Committable,
    Complete,
    GlobalCommitter,
    JobContext,
    Outcome,
    PreCommit,
    Settled,
    SubtaskContext,
    TwoPhaseCommitSink,
)
from twopc.errors import CheckpointCorrupted, TransactionLost, Unavailable

MANIFEST, NEXT_MANIFEST, LOCK = "manifest.json", ".manifest.tmp", ".lock"


def read_table(folder: str | Path) -> Iterator[Any]:
    """Yield every value of the table, as it is when the manifest is read: of whole checkpoints."""
    for name in Manifest.read(Path(folder)).files:
        with _inside(Path(folder), name).open("rb") as lines:
            yield from map(json.loads, lines)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of the table: data files, each with its size, up to a checkpoint of a job."""

    job: str = ""
    checkpoint: int = 0
    files: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Return the manifest of the table; one of nothing where there is none yet."""
        try:
            return cls(**json.loads((folder / MANIFEST).read_bytes()))
        except FileNotFoundError:
            return cls()

    def replace(self, folder: Path) -> None:
        """Make this the manifest of the table, in one step."""
        with (folder / NEXT_MANIFEST).open("wb") as stream:
            stream.write(json.dumps({"job": self.job, "checkpoint": self.checkpoint, "files": self.files}).encode())
            stream.flush()
            os.fsync(stream.fileno())
        (folder / NEXT_MANIFEST).replace(folder / MANIFEST)
        _sync_folder(folder)


class TableCommitter(GlobalCommitter):
    """Names the data files of one checkpoint after the other in the manifest."""

    def __init__(self, job: str, folder: Path) -> None:
        self._job = job
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def commit(self, checkpoint_id: CheckpointId, committables: Sequence[Committable]) -> None:
        # A driver that was taken for dead may commit at this moment too: between reading and replacing nobody else may.
        with (self._folder / LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Unavailable(f"another process is committing to the table in {self._folder}") from None
            self._commit(checkpoint_id, {item.name: int(item.payload["size"]) for item in committables})

    def _commit(self, checkpoint_id: CheckpointId, files: Mapping[str, int]) -> None:
        manifest = Manifest.read(self._folder)
        if manifest.job not in ("", self._job):
            raise ConfigurationError(f"the table in {self._folder} is of job {manifest.job!r}: use another folder")
        if manifest.checkpoint >= checkpoint_id:
            if not files.keys() <= manifest.files.keys():
                raise ConfigurationError(
                    f"the table in {self._folder} is from another run, whose checkpoints are gone: use another folder"
                )
            return
        for name, size in files.items():
            if not _is_whole(_inside(self._folder, name), size):
                raise TransactionLost(
                    f"checkpoint {checkpoint_id} has completed, but {name} is not there, or cut short"
                )
        Manifest(self._job, checkpoint_id, {**manifest.files, **files}).replace(self._folder)


@dataclass(slots=True)
class OpenFile:
    """The transaction: a data file that only this subtask of this attempt knows."""

    path: Path
    stream: BinaryIO
    records: int = 0


class TableSink(TwoPhaseCommitSink[OpenFile]):
    """Writes `<job>.<attempt>.<subtask>.<number>.jsonl` files into a folder, which `read_table` reads."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._context: SubtaskContext | None = None
        self._begun = 0

    def open(self, context: SubtaskContext) -> None:
        self._context = context
        self._folder.mkdir(parents=True, exist_ok=True)

    def begin(self) -> OpenFile:
        context = self._opened()
        self._begun += 1
        path = self._folder / f"{context.job}.{context.attempt}.{context.subtask}.{self._begun}.jsonl"
        return OpenFile(path, path.open("xb"))

    def write(self, txn: OpenFile, batch: Batch) -> int:
        lines = batch.encoded_values(Json(), "writing JSON")
        txn.stream.writelines((b"null" if line is None else line) + b"\n" for line in lines)
        txn.records += len(lines)
        return len(lines)

    def pre_commit(self, txn: OpenFile, request: PreCommit) -> Committable | None:
        if txn.records == 0:
            return None
        txn.stream.flush()
        os.fsync(txn.stream.fileno())
        size = txn.stream.tell()
        txn.stream.close()
        _sync_folder(self._folder)
        return Committable(txn.path.name, request.checkpoint_id, self._opened().subtask, {"size": size})

    def commit(self, committable: Committable, proof: Complete) -> None:
        """The global committer makes it visible."""

    def abort(self, txn: OpenFile) -> None:
        txn.stream.close()
        txn.path.unlink(missing_ok=True)

    def open_global_committer(self, context: JobContext) -> GlobalCommitter:
        return TableCommitter(context.job, self._folder)

    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        named = Manifest.read(self._folder).files
        return [self._settled(item, item.name in named or item.name in confirmed) for item in committables]

    def abort_lingering(self, context: JobContext) -> list[str]:
        # What completed checkpoints of earlier attempts have is in the manifest: the global committer came first.
        ours = re.compile(rf"{re.escape(context.job)}\.(\d+)\.\d+\.\d+\.jsonl")
        found = [(path, ours.fullmatch(path.name)) for path in self._folder.glob("*.jsonl")]
        named = Manifest.read(self._folder).files
        lingering = [path for path, match in found if match and int(match[1]) < context.attempt]
        lingering = [path for path in lingering if path.name not in named]
        for path in lingering:
            path.unlink(missing_ok=True)
        return sorted(path.name for path in lingering)

    def describe(self) -> Mapping[str, Any]:
        return {"type": "TableSink", "folder": str(self._folder)}

    def _settled(self, item: Committable, committed: bool) -> Settled:
        if committed:
            return Settled(item, Outcome.ALREADY_COMMITTED, "the table has it")
        if _is_whole(_inside(self._folder, item.name), item.payload["size"]):
            return Settled(item, Outcome.COMMITTED, "its data file is whole: the global committer will name it")
        return Settled(item, Outcome.LOST, f"{item.name} with its {item.payload['size']} bytes is not there")

    def _opened(self) -> SubtaskContext:
        if self._context is None:
            raise RuntimeError("the sink was not opened")
        return self._context


def _inside(folder: Path, name: str) -> Path:
    """Return the path of a name from a checkpoint or a manifest, which must not lead out of the folder."""
    if Path(name).name != name:
        raise CheckpointCorrupted(f"{name!r} is not a file directly in {folder}")
    return folder / name


def _is_whole(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, as fsync makes the contents of a file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
