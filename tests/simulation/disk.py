"""The disk of the checkpoint folder, which outlives every process."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from typing import Any

import orjson

from tests.simulation.filesystem import File, Folder, SimFileSystem, SimPath
from tests.simulation.process import Crashed
from tests.simulation.world import World
from twopc.errors import CheckpointCorrupted
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.attempt_facts import AttemptEnded, StopRequested
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId
from twopc.protocol.layout import ENTRIES, LEDGER, TWINS, checkpoint_of_metadata, metadata_path
from twopc.protocol.ledger_facts import (
    CheckpointCompleted,
    CheckpointReserved,
    CheckpointsDisposed,
    CommittablesConfirmed,
    Entry,
    LossSettled,
)
from twopc.protocol.ledger_state import LedgerState, decode_entry
from twopc.storage.local import LocalStore
from twopc.storage.store import Content, StoredObject

_IN_LEDGER = f"{LEDGER}/"
_BEFORE_THE_NAME = (CrashPoint.COORDINATOR_METADATA_UNSYNCED, CrashPoint.COORDINATOR_METADATA_UNNAMED)


LONGEST_AWAY = 3
"""How many calls a store refuses that has just lost an answer and is away."""


class Answer(Enum):
    """What its creator hears of an entry, and what its client does then."""

    HEARD = "heard"
    TRIED_AGAIN = "tried again"
    GIVEN_UP = "given up"
    AWAY = "given up, and the store is away"
    BEFORE_IT_IS_DONE = "given up, and carried out late"


def positions_of(metadata: bytes) -> dict[str, int]:
    """Return the positions that the metadata of a checkpoint hold, by split."""
    snapshots = orjson.loads(metadata)["body"]["snapshots"]
    parts = [part for each in snapshots for part in each["parts"].values()]
    return {split: position for part in parts for split, _, [position, _] in part.get("splits", ())}


class CheckpointFolder(LocalStore):
    """One job's checkpoint folder, as production writes it; notes which completion records were ever there.

    `rotten` is the file that a bit was flipped in, if that has happened.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.completed_names: set[str] = set()
        self._creators = 0
        self.savepoints: set[CheckpointId] = set()
        self._outstanding: dict[CheckpointId, set[str]] = {}
        self._global_names: set[str] = set()
        self._confirmed: set[str] = set()
        self._bases: dict[CheckpointId, set[CheckpointId]] = {}
        self._doubtful = NO_CHECKPOINT
        self._stored_last = NO_CHECKPOINT
        self._away = 0
        self._late: tuple[str, bytes] | None = None
        self.is_own_entry_in_the_way = False
        """Whether a creator was just refused by an entry that it has given up, with nothing behind it."""
        self.draining: set[AttemptId] = set()
        """The attempts that somebody has asked to drain, or one before that they go on for."""
        self.ended: set[AttemptId] = set()
        self.last_reserved = NO_CHECKPOINT
        self.rotten = ""
        self._disk = SimFileSystem(self._refuses, self._named)
        self.top = self._doubtful_at = self._disk.root
        faults = world.faults
        self._at_sync = (faults.crash_at_write, faults.fsync_fails)
        self._at_write = (faults.crash_at_write, faults.disk_full)
        self._entries, self._twin_entries = self.top / LEDGER, self.top / TWINS
        root: Any = self.top
        super().__init__(root)

    def within(self, name: str) -> CheckpointFolder:
        """There is one job."""
        return self

    def creator(self) -> str:
        """Of one length, and the same in every play of a seed."""
        self._creators += 1
        return f"{self._creators:016x}"

    def _listed(self, folder: str) -> list[str]:
        node = self._disk.find(folder)
        return [name for name in node.names if name[0] != "."] if isinstance(node, Folder) else []

    def names(self, prefix: str = "") -> list[str]:
        if prefix == ENTRIES:
            self._refuse_while_away()
        return super().names(prefix)

    def _is_folder(self, name: str) -> bool:
        return isinstance(self._disk.find(name), Folder)

    def get(self, name: str) -> bytes:
        return (self.top / name).file().data

    def opened(self) -> None:
        """Another process opens it: one that knows nothing of what was made durable before."""
        self._durable.clear()

    def lose_power(self, strike: int) -> None:
        self.world.note("disk", "LOSES POWER")
        self.world.coverage["power failed"] += 1
        self._disk.lose_power(strike)
        self._forget_what_is_gone()

    def rot(self, strike: int) -> None:
        self.rotten = self.rotten or self._disk.flip_a_bit(strike).replace(f"{TWINS}/", _IN_LEDGER)
        if self.rotten:
            self.world.note("disk", "ROTS", self.rotten)
            self.world.coverage["bit rot"] += 1

    def is_blamed(self, message: str) -> bool:
        """Whether this is a refusal of the rotten file, by name."""
        return bool(self.rotten) and self.rotten in message

    def _refuses(self, what: str, path: str) -> None:
        """Let a write fail, or the process end at it; one that is dead already does nothing any more."""
        world = self.world
        process = world.lane.process if world.lane is not None else None
        if process is not None and not process.alive:
            raise Crashed
        if process is None or what == "remove" or world.calm:
            return
        dice = world.dice
        crash, refusal = self._at_sync if what == "sync" else self._at_write
        if not crash and not refusal:
            return
        where = process.name
        nth = dice.occasion("at the disk", where)
        if world.only is None:
            either = crash + refusal
            if dice.spares(either):
                return
            crash, refusal = crash / either, 1.0
        path = path.partition("/.")[0]  # temporary names are made by chance, and no trace may depend on that
        if dice.throw_at(nth, "crash at a write", where, crash):
            world.coverage["crash at a write"] += 1
            world.kill(process, f"at the {what} of {path}")
            raise Crashed
        if what == "sync":
            if dice.throw_at(nth, "fsync fails", where, refusal):
                world.note("disk", "FSYNC FAILS", path)
                raise OSError(errno.EIO, "Input/output error")
        elif dice.throw_at(nth, "disk full", where, refusal):
            world.note("disk", "FULL", path)
            raise OSError(errno.ENOSPC, "No space left on device")

    def create_once(self, name: str, data: bytes) -> None:
        path = self.top / name
        self._refuse_while_away()
        self._carry_out_late()
        self.is_own_entry_in_the_way = False
        self._stored_last = NO_CHECKPOINT
        if self.world.calm and (path.parent is not self._entries or self._twin_entries.node is not None):
            self._create_at_once(path, File(data, data))
            return
        fate = self._fate_of_answer(path)
        if fate is Answer.BEFORE_IT_IS_DONE:
            self._late = name, data
            raise OSError(errno.EIO, "simulated: it is not stored yet, and nobody waits for it")
        try:
            super().create_once(name, data)
        except OSError as error:
            self._forget_what_is_gone()
            if isinstance(error, FileExistsError) and path.parent is self._entries:
                self._look_in_the_way(name, data)
            raise
        self._is_stored(path)
        self._lose_answer(fate, name, data)

    def _look_in_the_way(self, name: str, data: bytes) -> None:
        """Whoever is refused by the last entry, and has stored that itself, must take it back."""
        try:
            place, there = decode_entry(self.get(name), name)
        except (CheckpointCorrupted, OSError):
            return
        is_own = place.creator == decode_entry(data, name)[0].creator
        self.is_own_entry_in_the_way = is_own and super().names(ENTRIES)[-1] == name
        if is_own and isinstance(there, CheckpointCompleted):
            self._stored_last, self._doubtful_at = there.checkpoint_id, self.top / name

    def _fate_of_answer(self, path: SimPath) -> Answer:
        world = self.world
        struck = world.strikes("store answer lost", world.faults.store_answer_lost) if world.lane is not None else 0
        if not struck:
            return Answer.HEARD
        fate = world.of((Answer.TRIED_AGAIN, Answer.GIVEN_UP, Answer.AWAY, Answer.BEFORE_IT_IS_DONE), struck)
        if path.parent is not self._entries and fate in (Answer.AWAY, Answer.BEFORE_IT_IS_DONE):
            fate = Answer.GIVEN_UP
        world.note("disk", "ANSWER LOST", path.text, fate.value)
        world.coverage[f"store answer lost, {fate.value}"] += 1
        return fate

    def _lose_answer(self, fate: Answer, name: str, data: bytes) -> None:
        """Let the creator, whose entry is there, hear nothing of it."""
        if fate is Answer.TRIED_AGAIN:
            try:
                super().create_once(name, data)
            except FileExistsError:
                self.world.violated("a creator was told that it has lost to itself", name)
                raise
        elif fate is not Answer.HEARD:
            self._away = LONGEST_AWAY if fate is Answer.AWAY else 0
            raise OSError(errno.EIO, "simulated: it is stored, and the answer was lost")

    def _refuse_while_away(self) -> None:
        if self._away and not self.world.calm:
            self._away -= 1
            self.is_own_entry_in_the_way = False
            raise OSError(errno.EIO, "simulated: the store does not answer")

    def _carry_out_late(self) -> None:
        """Do what a creator has given up, if nothing else stands there by now."""
        if self._late is None:
            return
        (name, data), self._late = self._late, None
        with suppress(OSError):
            super().create_once(name, data)
            self.world.note("disk", "CARRIES OUT LATE", name)
            self._is_stored(self.top / name)

    def _is_stored(self, path: SimPath) -> None:
        """What follows a completion record was stored by somebody who has read that: it is there to stay."""
        self._stored_last = self._doubtful if path is self._doubtful_at else NO_CHECKPOINT
        self._doubtful = NO_CHECKPOINT

    def _forget_what_is_gone(self) -> None:
        """The completion record that was stored last may not have lasted."""
        if self._doubtful_at.node is None:
            self._forget(self._doubtful)

    def _forget(self, checkpoint_id: CheckpointId) -> None:
        self._outstanding.pop(checkpoint_id, None)
        self.savepoints.discard(checkpoint_id)

    def _create_at_once(self, path: SimPath, file: File) -> None:
        """In the calm phase no step of it can fail, or be the last, but for the places that faults are aimed at."""
        self._refuses("name", path.text)
        if path.parent is self._entries:
            path.add(file)
            twin = self._twin_entries / path.name
            if twin.node is None:
                twin.add(file)
            self._is_stored(path)
            return
        if path.parent.node is None:
            path.parent.add(Folder())
        checkpoint = checkpoint_of_metadata(path.text)
        if checkpoint is None:
            path.add(file)
            return
        for point in _BEFORE_THE_NAME:
            reached(point, checkpoint=checkpoint)
        path.add(file)
        reached(CrashPoint.COORDINATOR_METADATA_NAMED, checkpoint=checkpoint)

    def put(self, files: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        if not self.world.calm:
            return super().put(files)
        for name, content in files:
            assert isinstance(content, bytes)
            path = self.top / name
            self._refuses("name", path.text)
            if path.parent.node is None:
                path.parent.add(Folder())
            path.add(File(content, content))
        return []

    def _delete(self, name: str) -> None:
        self.is_own_entry_in_the_way = False
        if self._stored_last and self.top / name is self._doubtful_at:
            # Who stored it has found at once that it is fenced, and takes it back: nobody has acted on it.
            self._forget(self._stored_last)
        if not (self.world.calm and name.startswith(_IN_LEDGER)):
            super()._delete(name)
            return
        self._refuses("remove", name)
        name = name[len(_IN_LEDGER) :]
        for path in (self._twin_entries / name, self._entries / name):
            if path.node is not None:
                path.remove()

    def _named(self, path: str, data: bytes) -> None:
        """A file is there for all to see: who reads an entry of the ledger acts on it, durable or not."""
        if not path.startswith(_IN_LEDGER) or "/." in path:
            return
        _, entry = decode_entry(data, path)
        match entry:
            case CheckpointReserved(checkpoint_id=checkpoint_id):
                self.last_reserved = max(self.last_reserved, checkpoint_id)
            case CheckpointCompleted(checkpoint_id=checkpoint_id) as record:
                self.world.note("disk", "COMPLETION RECORD", checkpoint_id)
                names = {name for each in record.committables for name in each}
                self.completed_names |= names
                self._global_names.update(record.global_committables)
                self._outstanding[checkpoint_id] = names - self._confirmed
                self._doubtful, self._doubtful_at = checkpoint_id, self._disk.path(path)
                if record.kind.is_savepoint:
                    self.savepoints.add(checkpoint_id)
            case CommittablesConfirmed(names=confirmed):
                self._confirmed.update(confirmed)
                for outstanding in self._outstanding.values():
                    outstanding.difference_update(confirmed)
            case LossSettled():
                self._outstanding.get(entry.checkpoint_id, set()).difference_update(entry.names)
                bases = self._bases.setdefault(entry.checkpoint_id, set())
                bases.update(base for _, base in entry.bases if base)
            case CheckpointsDisposed():
                self.savepoints.difference_update(entry.forgotten)
            case _:
                self._named_of_attempt(entry)

    def _named_of_attempt(self, entry: Entry | LedgerState) -> None:
        match entry:
            case AttemptEnded(attempt=attempt):
                self.ended.add(attempt)
            case StopRequested(drain=True):
                self.draining.add(entry.attempt)
            case LedgerState(stop=StopRequested(drain=True)):
                # An attempt begins with a summary, and goes on with what the one before was asked for.
                self.draining.add(entry.current)
            case _:
                pass

    def was_completed(self, checkpoint_id: CheckpointId) -> bool:
        """Whether a completion record of it is there, or was until it was needed no more."""
        return checkpoint_id in self._outstanding

    def outstanding_of(self, checkpoint_id: CheckpointId) -> frozenset[str]:
        """What subtasks have to commit of a completed checkpoint, and is not known to be committed."""
        return frozenset(self._outstanding.get(checkpoint_id, ())) - self._global_names

    @property
    def newest(self) -> CheckpointId:
        """The newest checkpoint that was ever completed."""
        return max(self._outstanding)

    def kept(self) -> list[CheckpointId]:
        """The completed checkpoints that are there, in order."""
        return [each for each in sorted(self._outstanding) if self._disk.find(metadata_path(each)) is not None]

    def lasting_positions(self) -> dict[str, int]:
        """Where each split stands in the newest checkpoint, once that is there to stay."""
        newest = max(self._outstanding, default=NO_CHECKPOINT)
        if newest in (NO_CHECKPOINT, self._doubtful, self._stored_last) or self.rotten:
            return {}
        return positions_of(self.get(metadata_path(newest)))

    def missing(self) -> tuple[CheckpointId, ...]:
        """Completed checkpoints that may be needed, and are gone.

        Needed are savepoints, and the newest checkpoint with nothing outstanding, with all after it: a subtask whose
        transaction was lost replays from one of these; and those that its healed subtasks are restored from.
        """
        confirmed = max((each for each, outstanding in self._outstanding.items() if not outstanding), default=0)
        needed = self.savepoints.union(each for each in self._outstanding if each >= confirmed)
        needed = needed.union(*(self._bases.get(each, set()) for each in needed))
        return tuple(each for each in sorted(needed) if self._disk.find(metadata_path(each)) is None)
