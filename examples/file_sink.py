"""Exactly-once output to files, and the model for writing a sink of your own.

Each subtask writes one file per checkpoint, of JSON texts, one a line. Until its checkpoint has completed, the file has
a hidden name that readers skip; committing is renaming it. All of a sink's duties can be seen here:

    begin       open a file under a hidden name that no other transaction ever has
    pre_commit  bring it to the disk, so that a rename is all that is left to do, by whatever process
    commit      rename it; done again, it finds the file renamed already
    recover     on the driver, after a crash: the same rename for every pre-committed file; says which are lost
    abort       remove the open file; abort_lingering: the open files of earlier attempts

The folder must be one that the driver and every worker see under the same path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from twopc import Batch, ConfigurationError, Json
from twopc.connect import (
    Committable,
    Complete,
    JobContext,
    Outcome,
    PreCommit,
    Settled,
    SubtaskContext,
    TwoPhaseCommitSink,
)
from twopc.errors import CheckpointCorrupted, TransactionLost


@dataclass(slots=True)
class OpenFile:
    """The transaction: a file that only this subtask of this attempt knows."""

    path: Path
    stream: BinaryIO
    records: int = 0


class FileSink(TwoPhaseCommitSink[OpenFile]):
    """Writes `<job>-<checkpoint>-<subtask>.jsonl` files into a folder."""

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
        path = self._folder / f".{context.job}.{context.attempt}.{context.subtask}.{self._begun}.tmp"
        return OpenFile(path, path.open("xb"))

    def write(self, txn: OpenFile, batch: Batch) -> int:
        lines = batch.encoded_values(Json(), "writing JSON")
        txn.stream.writelines((b"null" if line is None else line) + b"\n" for line in lines)
        txn.records += len(lines)
        return len(lines)

    def pre_commit(self, txn: OpenFile, request: PreCommit) -> Committable | None:
        if txn.records == 0:
            return None
        # An error here is not a CheckpointDeclined: after a failed fsync nobody knows what is on the disk, so the file
        # is spoilt, and only a new attempt, which writes it anew, puts that right.
        txn.stream.flush()
        os.fsync(txn.stream.fileno())
        size = txn.stream.tell()
        txn.stream.close()
        _sync_folder(self._folder)
        context = self._opened()
        final = f"{context.job}-{request.checkpoint_id:08}-{context.subtask:04}.jsonl"
        return Committable(txn.path.name, request.checkpoint_id, context.subtask, {"final": final, "size": size})

    def commit(self, committable: Committable, proof: Complete) -> None:
        settled = self._settle(committable)
        if settled.outcome is Outcome.LOST:
            raise TransactionLost(f"checkpoint {proof.checkpoint_id} has completed, but {settled.evidence}")

    def abort(self, txn: OpenFile) -> None:
        txn.stream.close()
        txn.path.unlink(missing_ok=True)

    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        return [self._settle(committable, committable.name in confirmed) for committable in committables]

    def abort_lingering(self, context: JobContext) -> list[str]:
        # After `recover` no pre-committed file has its hidden name any more, so whatever still has one was open only.
        hidden = re.compile(rf"\.{re.escape(context.job)}\.(\d+)\.\d+\.\d+\.tmp")
        found = [(path, hidden.fullmatch(path.name)) for path in self._folder.glob(".*.tmp")]
        lingering = [path for path, match in found if match and int(match[1]) < context.attempt]
        for path in lingering:
            path.unlink(missing_ok=True)
        return sorted(path.name for path in lingering)

    def describe(self) -> Mapping[str, Any]:
        return {"type": "FileSink", "folder": str(self._folder)}

    def _settle(self, committable: Committable, confirmed: bool = False) -> Settled:
        """Rename the file if that is still to be done; say what was found. Can be repeated at any time."""
        hidden, final = self._inside(committable.name), self._inside(committable.payload["final"])
        size = committable.payload["size"]
        if hidden.exists() and hidden.stat().st_size == size:
            if final.exists():
                raise ConfigurationError(f"{final} is from another run, whose checkpoints are gone: use another folder")
            hidden.rename(final)
            _sync_folder(self._folder)
            return Settled(committable, Outcome.COMMITTED, f"{hidden} is now {final.name}")
        if confirmed or final.exists():
            # A confirmed file may be gone: its readers are free to move it away.
            return Settled(committable, Outcome.ALREADY_COMMITTED, f"{final} was in place before")
        return Settled(committable, Outcome.LOST, f"neither {hidden} with its {size} bytes nor {final} is there")

    def _inside(self, name: str) -> Path:
        """Return the path of a name from a checkpoint, which must not lead out of the folder."""
        if Path(name).name != name:
            raise CheckpointCorrupted(f"{name!r}, named by a checkpoint, is not a file directly in {self._folder}")
        return self._folder / name

    def _opened(self) -> SubtaskContext:
        if self._context is None:
            raise RuntimeError("the sink was not opened")
        return self._context


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, as fsync makes the contents of a file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
