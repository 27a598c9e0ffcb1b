"""The durable facts of one job: append-only, numbered, each entry created once.

Invariants:
- one writer: whoever finds the next number taken, or a greater one there, has been fenced by another coordinator;
- `state` is what the entries say, no more: a fact that could not be stored changes nothing, and an entry of it that is
  found later is taken back;
- each entry names its job, its number and the entry before: one that was exchanged, moved or lost is refused by name;
- a checkpoint's metadata is stored before its completion record, which names its SHA-256; and before both, what its
  subtasks have acknowledged is there under the ledger's own path;
- entries are deleted only when a summary of them is durable: what is left of them needs not follow each other.
"""

from __future__ import annotations

import logging
from functools import partial

from twopc.errors import CheckpointCorrupted, Fenced
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.facts import CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import (
    CHECKPOINT_PREFIX,
    ENTRIES,
    FILES,
    checkpoint_folder,
    checkpoint_of_file,
    checkpoint_of_folder,
    entry_path,
    entry_sequences,
    is_manifest,
    manifest_of,
    metadata_path,
    subtask_folder,
)
from twopc.protocol.ledger_checks import check_metadata
from twopc.protocol.ledger_facts import Entry, Fact
from twopc.protocol.ledger_place import NOTHING_BEFORE, LedgerPlace, digest_of_entry
from twopc.protocol.ledger_state import LedgerState, decode_entry, encode_entry
from twopc.protocol.manifest import Manifest
from twopc.storage.store import CheckpointStore
from twopc.storage.stored_ledger import entry_numbers, read_ledger
from twopc.storage.transfers import side_by_side

SUMMARY_EVERY = 100
"""A summary is written after so many entries, and is how a new attempt is stored: entries are listed at each append,
and read when the ledger is opened, so few are kept; a summary costs as much as the completion records that it holds."""

log = logging.getLogger(__name__)


class MissingSnapshot(Exception):
    """A subtask has acknowledged a snapshot that is not there under the ledger's own path."""

    def __init__(self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, what: str) -> None:
        super().__init__(what)
        self.checkpoint_id = checkpoint_id
        self.subtask = subtask


class Ledger:
    """One job's ledger, open for writing. Opening replays it: every byte is checked, CheckpointCorrupted raised."""

    def __init__(self, job: str, store: CheckpointStore, summary_every: int = SUMMARY_EVERY) -> None:
        self._job = job
        self._store = store
        self._summary_every = summary_every
        self._creator = store.creator()
        stored = read_ledger(store, job)
        self.state: LedgerState = stored.state
        self._next = max(stored.entries, default=0) + 1
        self._previous = digest_of_entry(stored.entries[self._next - 1]) if stored.entries else NOTHING_BEFORE
        self._unsummarised = len(stored.entries)
        self._is_established = False
        self._named: dict[CheckpointId, frozenset[str]] = {}

    def store(self, fact: Fact) -> None:
        """Store one fact durably.

        Raises Fenced, OSError if storing failed, or MissingSnapshot; then nothing has changed.
        """
        if isinstance(fact, CheckpointMetadata):
            self._store_metadata(fact)
            return
        state = self.state.apply(fact)
        begins = isinstance(fact, AttemptStarted)
        # The summary that is due with an attempt says all that the fact does: one entry is stored where two would be.
        self._append(state if begins else fact)
        self.state = state
        if begins:
            self._delete_older()

    def compact(self) -> None:
        """Sum up if there are many entries; raise Fenced as `store` does."""
        if self._unsummarised >= self._summary_every:
            self._summarise()

    def metadata(self, checkpoint_id: CheckpointId) -> CheckpointMetadata:
        """Read a completed checkpoint back; raise CheckpointCorrupted if it can't be trusted."""
        completed = self.state.find(checkpoint_id)
        if completed is None:
            raise KeyError(checkpoint_id)
        try:
            data = self._store.get(metadata_path(checkpoint_id))
        except FileNotFoundError as error:
            raise CheckpointCorrupted(
                f"{self._job}/{metadata_path(checkpoint_id)} is missing, while checkpoint {checkpoint_id} is completed"
            ) from error
        return check_metadata(self._job, completed.record, data)

    def prune(self) -> None:
        """Delete the checkpoints that are no longer kept, and aborted ones older than the newest.

        What crashes left goes too, each time: a temporary name whose deletion failed is told to nobody, and only
        looking finds it.
        """
        self._store.sweep(ENTRIES)
        newest = self.state.newest
        if newest is None:
            return
        self._named = {each: named for each, named in self._named.items() if self.state.find(each) is not None}
        there = [checkpoint_id for name in self._store.parts() if (checkpoint_id := checkpoint_of_folder(name))]
        for checkpoint_id in there:
            prefix = f"{checkpoint_folder(checkpoint_id)}/"
            if checkpoint_id <= newest.checkpoint_id:
                self._store.sweep(prefix)
            if checkpoint_id < newest.checkpoint_id and self.state.find(checkpoint_id) is None:
                reached(CrashPoint.COORDINATOR_IN_PRUNE)
                # The metadata first: nobody takes for a checkpoint what has none.
                self._store.delete([metadata_path(checkpoint_id)])
                self._store.delete_unordered(self._store.names(prefix))
        self._prune_files(newest.checkpoint_id)

    def _prune_files(self, newest: CheckpointId) -> None:
        """Delete the files that no manifest names, and none will.

        A manifest that is still to come is of a checkpoint after the newest completed one. It names what was stored for
        that one or a later one, and what its subtask's snapshot before names: that of the newest, or of a later one,
        whose manifest is there.
        """
        # Before the manifests: what is stored meanwhile isn't looked at.
        older = [name for name in self._store.names(f"{FILES}/") if (checkpoint_of_file(name) or newest + 1) <= newest]
        if not older:
            return
        try:
            named = self._files_named(newest)
        except (CheckpointCorrupted, FileNotFoundError) as error:
            log.warning(
                "job %s: no stored file is deleted, because it is unknown which are needed: %s", self._job, error
            )
            return
        self._store.delete_unordered(name for name in older if name not in named)

    def _files_named(self, newest: CheckpointId) -> frozenset[str]:
        """The files that kept checkpoints name, and manifests after the newest; raise CheckpointCorrupted."""
        kept = [checkpoint.checkpoint_id for checkpoint in self.state.completed]
        self._named |= {each: self._named_by(each) for each in kept if each not in self._named}
        coming = [
            name
            for name in self._store.names(CHECKPOINT_PREFIX)
            if is_manifest(name) and (checkpoint_of_folder(name.partition("/")[0]) or 0) > newest
        ]
        manifests = zip(coming, self._store.get_all(coming), strict=True)
        later = (file.stored for name, data in manifests for file in Manifest.decode(data, f"{self._job}/{name}").files)
        return frozenset(later).union(*self._named.values())

    def _named_by(self, checkpoint_id: CheckpointId) -> frozenset[str]:
        states = [
            snapshot.state for snapshot in self.metadata(checkpoint_id).snapshots if snapshot.state.manifest is not None
        ]
        paths = [manifest_of(state.path) for state in states]
        stored = zip(states, paths, self._store.get_all(paths), strict=True)
        manifests = (Manifest.acknowledged(data, state, f"{self._job}/{path}") for state, path, data in stored)
        return frozenset(file.stored for manifest in manifests for file in manifest.files)

    def _store_metadata(self, metadata: CheckpointMetadata) -> None:
        checkpoint_id = metadata.checkpoint_id
        with_files = [snapshot for snapshot in metadata.snapshots if snapshot.state.manifest is not None]
        looking = side_by_side(partial(self._require, checkpoint_id), with_files, self._store.at_once)
        named = frozenset(file.stored for manifest in looking for file in manifest.files)
        try:
            self._store.create_once(metadata_path(checkpoint_id), metadata.stored)
        except FileExistsError as error:
            raise self._fenced(f"metadata of checkpoint {checkpoint_id}") from error
        self._named[checkpoint_id] = named

    def _require(self, checkpoint_id: CheckpointId, snapshot: SubtaskSnapshot) -> Manifest:
        """Return the manifest of a snapshot; raise MissingSnapshot unless it is there, as acknowledged.

        Whoever wrote it may have another disk under the same path: only looking tells.
        """
        state, subtask, path = snapshot.state, snapshot.subtask, manifest_of(snapshot.state.path)
        if state.path != subtask_folder(checkpoint_id, subtask):
            raise MissingSnapshot(checkpoint_id, subtask, f"{state.path} is not its place")
        try:
            return Manifest.acknowledged(self._store.get(path), state, f"{self._job}/{path}")
        except FileNotFoundError:
            raise MissingSnapshot(checkpoint_id, subtask, f"{self._job}/{path} is not there") from None
        except CheckpointCorrupted as error:
            raise MissingSnapshot(checkpoint_id, subtask, str(error)) from error

    def _append(self, entry: Entry | LedgerState) -> None:
        number = self._next
        data = encode_entry(entry, LedgerPlace(self._job, number, self._previous, self._creator))
        self._establish()
        self._create(number, data)
        if self._is_one_after(number):
            # The name was free again only because another coordinator has summed up and deleted what stood there.
            self._store.delete([entry_path(number)])
            raise self._fenced(f"a ledger entry after {number}")
        self._next = number + 1
        self._previous = digest_of_entry(data)
        self._unsummarised += 1

    def _create(self, number: int, data: bytes) -> None:
        while True:
            try:
                self._store.create_once(entry_path(number), data)
            except FileExistsError as error:
                if not self._takes_back(number):
                    raise self._fenced(f"ledger entry {number}") from error
            else:
                return

    def _establish(self) -> None:
        if not self._is_established:
            self._store.establish()
            self._is_established = True

    def _takes_back(self, number: int) -> bool:
        """Delete an entry of ours that was given up; False if another's stands there, or one behind it.

        Its fact counts for nothing here: its answer was lost, or the store carried it out when nobody waited any more.
        """
        path = entry_path(number)
        if max(entry_numbers(self._store), default=number) != number:
            return False
        try:
            there, _ = decode_entry(self._store.get(path), f"{self._job}/{path}")
        except FileNotFoundError:
            return True
        if there.creator != self._creator:
            return False
        self._store.delete([path])
        return True

    def _summarise(self) -> None:
        try:
            self._append(self.state)
        except OSError as error:
            self._not_summarised(error)
            return
        self._delete_older()

    def _delete_older(self) -> None:
        """The last entry is a summary: take away what it sums up."""
        summary = self._next - 1
        try:
            self._store.delete_unordered(entry_path(older) for older in entry_numbers(self._store) if older < summary)
        except OSError as error:
            self._not_summarised(error)
            return
        self._unsummarised = 1

    def _not_summarised(self, error: OSError) -> None:
        # Only growth is at stake: every fact is stored, and the next summary tries again.
        log.warning("job %s: the ledger could not be summarised: %s", self._job, error.strerror)

    def _is_one_after(self, number: int) -> bool:
        """Whether an entry has a greater number; their names are in the order of their numbers."""
        own = entry_path(number)
        return bool(entry_sequences(name for name in self._store.names(ENTRIES) if name > own))

    def _fenced(self, found: str) -> Fenced:
        return Fenced(
            f"another coordinator owns job {self._job!r}: it has written {found}{self._successor()}. "
            "Only one may run on a checkpoint folder"
        )

    def _successor(self) -> str:
        """Say which attempt has taken the job over, as far as the ledger can be read beside its new owner."""
        try:
            started = read_ledger(self._store, self._job).state.attempt
        except (CheckpointCorrupted, OSError):
            return ""
        if started is None or started.attempt <= self.state.current:
            return ""
        return f", and runs attempt {started.attempt}{started.driver}"
