"""The crash table: every place where a process may end, what is durable there, and what recovery does. Pure data.

C is the coordinator, T a subtask, G a global commit, R recovery, each counted in the order of a checkpoint, or of a
recovery; T17 and R6 have two halves. Between the processes, T14 to T16 and R10 are no line of ours: a proxy, or a
drill, brings them about and says that they were reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CrashSite(Enum):
    """The owner of the line of code where the place is."""

    COORDINATOR = "coordinator"
    SUBTASK = "subtask"
    DRIVER = "driver"
    BETWEEN = "between processes"


@dataclass(frozen=True, slots=True)
class Place:
    """One row of the crash table: what has happened, what is durable then, and what is done about a crash there."""

    code: str
    where: CrashSite
    happened: str
    durable: str
    recovery: str


_C, _T, _D, _B = CrashSite.COORDINATOR, CrashSite.SUBTASK, CrashSite.DRIVER, CrashSite.BETWEEN

_PREVIOUS = "the checkpoint before"
_RESERVED = "the id is reserved"
_ABORTED = "the checkpoint is aborted; its transactions are committed with the next one that completes"
_TOLD_AGAIN = "the coordinator comes back and tells it again to every subtask that attaches"
_LINGERING = "the open transaction is aborted as lingering; the input since the checkpoint before is read again"
_NOT_CARRIED = "the transaction is in no completed checkpoint: it is aborted as lingering, and its input read again"
_SETTLED = "the broker is asked about each committable: what is open is committed, what is committed is left alone"
_GLOBALLY = "the next driver commits globally whatever is not confirmed, the oldest checkpoint first"
_AGAIN = "recovery is done again from its start; each of its steps may be repeated"


class CrashPoint(Enum):
    """One place each; the value is its row of the table."""

    COORDINATOR_BEFORE_RESERVE = Place(
        "C1", _C, "a checkpoint is due; its id is not stored", _PREVIOUS, "the same id is reserved by who comes next"
    )
    COORDINATOR_AFTER_RESERVE = Place(
        "C2", _C, "the id is stored; no trigger is sent", _RESERVED, "the id is never used; a greater one is triggered"
    )
    COORDINATOR_IN_TRIGGERS = Place("C3", _C, "some subtasks are triggered, others are not", _RESERVED, _ABORTED)
    COORDINATOR_AFTER_TRIGGERS = Place("C4", _C, "all subtasks are triggered", _RESERVED, _ABORTED)
    COORDINATOR_IN_ACKS = Place(
        "C5", _C, "some subtasks have acknowledged, others have not", "some snapshots; no metadata", _ABORTED
    )
    COORDINATOR_AFTER_ACKS = Place(
        "C6", _C, "all have acknowledged; the metadata is not stored", "all snapshots; no metadata", _ABORTED
    )
    COORDINATOR_METADATA_UNSYNCED = Place(
        "C7", _C, "the metadata is written to a temporary name, not synced", "all snapshots; no metadata", _ABORTED
    )
    COORDINATOR_METADATA_UNNAMED = Place(
        "C8", _C, "the metadata is synced under its temporary name", "all snapshots; no metadata", _ABORTED
    )
    COORDINATOR_METADATA_NAMED = Place(
        "C9", _C, "the metadata has its name; its folder is not synced", "perhaps the metadata; no record", _ABORTED
    )
    COORDINATOR_AFTER_METADATA = Place(
        "C10", _C, "the metadata is durable; there is no completion record", "metadata, but no record", _ABORTED
    )
    COORDINATOR_AFTER_COMPLETION = Place(
        "C11", _C, "the completion record is created; nobody is told", "the checkpoint is completed", _TOLD_AGAIN
    )
    COORDINATOR_IN_NOTIFY = Place(
        "C12", _C, "some subtasks are told of the completion", "the checkpoint is completed", _TOLD_AGAIN
    )
    COORDINATOR_AFTER_NOTIFY = Place(
        "C13", _C, "all are told; no commit is confirmed", "the checkpoint is completed", _TOLD_AGAIN
    )
    COORDINATOR_BEFORE_PRUNE = Place(
        "C14", _C, "commits are confirmed; nothing is pruned", "the confirmations", "the next pruning takes all in"
    )
    COORDINATOR_IN_PRUNE = Place(
        "C15", _C, "a folder to prune has lost its name; it is not deleted", "what is kept", "the rest is swept later"
    )

    BEFORE_TRIGGER = Place("T1", _T, "records are written; the trigger is not noticed", _PREVIOUS, _LINGERING)
    BEFORE_PRE_COMMIT = Place("T2", _T, "triggered; nothing is flushed", _PREVIOUS, _LINGERING)
    IN_FLUSH = Place("T3", _T, "some records are delivered, others are under way", _PREVIOUS, _LINGERING)
    IN_PRE_COMMIT_AFTER_FLUSH = Place("T4", _T, "flushed; no positions in the transaction", _PREVIOUS, _LINGERING)
    AFTER_WITNESS = Place("T5", _T, "the positions are in the transaction; it is not described", _PREVIOUS, _LINGERING)
    BEFORE_SNAPSHOT = Place("T6", _T, "the next transaction is begun; no snapshot is taken", _PREVIOUS, _NOT_CARRIED)
    IN_STORE = Place("T7", _T, "some files of the snapshot are stored, others are not", _PREVIOUS, _NOT_CARRIED)
    BEFORE_SEAL = Place(
        "T8", _T, "all files are stored; the folder is not synced, and has no name", _PREVIOUS, _NOT_CARRIED
    )
    AFTER_STORE = Place("T9", _T, "the snapshot is stored; not acknowledged", "the snapshot", _NOT_CARRIED)
    AFTER_ACK = Place(
        "T10", _T, "acknowledged; whether it arrived is not known", "the snapshot", "if it completed: settled, else not"
    )
    AFTER_PRE_COMMIT = Place("T11", _T, "pre-committed; the next transaction is not begun", _PREVIOUS, _NOT_CARRIED)
    AFTER_NEXT_WRITE = Place(
        "T12", _T, "acknowledged; the next transaction has records", "the snapshot", "only the next one is aborted"
    )
    BEFORE_COMMIT = Place("T13", _T, "the completion is known; nothing is committed", "it is completed", _SETTLED)
    END_TXN_REPLY_LOST = Place(
        "T14", _B, "the broker has committed; its answer is lost", "it is completed, and committed", _SETTLED
    )
    END_TXN_NOT_APPLIED = Place("T15", _B, "the commit is sent; the broker has not got it", "it is completed", _SETTLED)
    END_TXN_CONCURRENT = Place(
        "T16", _B, "the broker still writes markers: CONCURRENT_TRANSACTIONS", "it is completed", _SETTLED
    )
    AFTER_END_TXN = Place("T17", _T, "one of several transactions is committed", "it is completed", _SETTLED)
    BETWEEN_COMMITS = Place(
        "T17+", _T, "one transaction group is committed, another is not", "it is completed", _SETTLED
    )
    AFTER_COMMIT = Place("T18", _T, "all are committed; they still count as pending", "it is completed", _SETTLED)
    AFTER_COMMITTED_SENT = Place(
        "T19", _T, "the coordinator is told of the commit, if the word arrives", "it is completed", _SETTLED
    )

    BEFORE_GLOBAL_COMMIT = Place(
        "G1", _D, "a checkpoint has completed; its global commit is not begun", "it is completed", _GLOBALLY
    )
    AFTER_GLOBAL_COMMIT = Place(
        "G2", _D, "it is committed globally; that is not confirmed", "it is completed, and committed", _GLOBALLY
    )
    AFTER_GLOBAL_CONFIRM = Place(
        "G3", _D, "its global commit is confirmed; the next one's is not begun", "the confirmation", _GLOBALLY
    )

    BEFORE_RESTORE = Place("R1", _T, "the subtask is started; nothing is restored", "the restored checkpoint", _AGAIN)
    IN_RESTORE_AFTER_MANIFEST = Place(
        "R2", _T, "the snapshot's manifest is read and verified", "the restored checkpoint", _AGAIN
    )
    IN_RESTORE = Place("R3", _T, "some files are fetched, others are not", "the restored checkpoint", _AGAIN)
    DRIVER_BEFORE_SETTLE = Place(
        "R4", _D, "the attempt is started; no committable is settled", "the attempt, which fences others", _AGAIN
    )
    DRIVER_IN_SETTLE = Place("R5", _D, "one of several committables is settled", "the attempt", _AGAIN)
    DRIVER_AFTER_SETTLE = Place("R6", _D, "all are settled; nothing is confirmed", "the attempt", _AGAIN)
    DRIVER_AFTER_CONFIRM = Place("R6+", _D, "all are confirmed; nothing is swept", "the confirmations", _AGAIN)
    DRIVER_IN_SWEEP = Place("R7", _D, "one transactional id is taken over, others are not", "the confirmations", _AGAIN)
    DRIVER_AFTER_ABORT_LINGERING = Place(
        "R8", _D, "all is swept; no subtask is started, no id initialised", "the confirmations", _AGAIN
    )
    BEFORE_SEEK = Place("R9", _T, "restored, ids initialised; nothing is read", "the restored checkpoint", _AGAIN)
    RECOVERY_AGAIN = Place("R10", _B, "a recovery has crashed, and the one after it too", "the attempts", _AGAIN)

    @property
    def code(self) -> str:
        return self.value.code

    @property
    def in_global_commit(self) -> bool:
        """Whether only a job with a global committer comes here."""
        return self.code.startswith("G")

    @property
    def where(self) -> CrashSite:
        return self.value.where
