"""The simple door to the contract of a sink: one class, with the names of Flink's `TwoPhaseCommitSinkFunction`.

`examples/file_sink.py` goes through it. What it leaves out, a sink of its own roles has (`twopc.sink`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from twopc.context import JobContext, SubtaskContext
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.sink import Committer, PreCommit, Settled, Sink, SinkWriter

Txn = TypeVar("Txn")


class TwoPhaseCommitSink(Sink, Generic[Txn]):
    """Output that becomes visible only when the checkpoint that it belongs to has completed.

    Each caller has a copy of its own:

    - the driver, before an attempt reads its first record: `recover`, then `abort_lingering`;
    - each subtask's data loop: `open`, then in turn `begin`, `write`..., `pre_commit`, and at the end `abort`, `close`;
    - each subtask's commit thread, beside the data loop: `commit`.
    """

    def open(self, context: SubtaskContext) -> None:
        """Prepare to write for this subtask. Nothing of an earlier attempt is pending any more."""

    @abstractmethod
    def begin(self) -> Txn:
        """Open a transaction for the records up to the next checkpoint."""

    @abstractmethod
    def write(self, txn: Txn, batch: Batch) -> int:
        """Write the batch into the open transaction; return how many records were written."""

    @abstractmethod
    def pre_commit(self, txn: Txn, request: PreCommit) -> Committable | None:
        """Make the transaction durable, as `SinkWriter.pre_commit` says; None if it holds nothing."""

    @abstractmethod
    def commit(self, committable: Committable, proof: Complete) -> None:
        """Commit a transaction that this subtask pre-committed. Idempotent. Raise TransactionLost if it is gone."""

    def release(self, completed: CheckpointId) -> None:
        """Everything up to this checkpoint is committed and confirmed: resources held for it may be used again."""

    @abstractmethod
    def abort(self, txn: Txn) -> None:
        """Abort the open transaction; never a pre-committed one."""

    def close(self) -> None:
        """Let go of everything; pre-committed transactions stay as they are."""

    @abstractmethod
    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        """On the driver: settle every committable of the latest checkpoint, as `Committer.settle` says."""

    def abort_lingering(self, context: JobContext) -> list[str]:
        """On the driver: abort what earlier attempts left open, as `Committer.abort_lingering` says."""
        return []

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        self.open(context)
        return _Writer(self)

    def open_committer(self, context: JobContext) -> Committer:
        return _Committer(self, context)


class _Writer(SinkWriter, Generic[Txn]):
    """Keeps the open transaction."""

    def __init__(self, sink: TwoPhaseCommitSink[Txn]) -> None:
        self._sink = sink
        self._open: list[Txn] = []

    @property
    def open_transaction(self) -> str | None:
        return str(self._open[0]) if self._open else None

    def begin(self) -> None:
        self._open = [self._sink.begin()]

    def write(self, batch: Batch) -> int:
        return self._sink.write(self._open[0], batch)

    def pre_commit(self, request: PreCommit) -> Committable | None:
        committable = self._sink.pre_commit(self._open[0], request)
        if committable is not None:
            self._open = []
        return committable

    def commit(self, committable: Committable, proof: Complete) -> None:
        self._sink.commit(committable, proof)

    def release(self, completed: CheckpointId) -> None:
        self._sink.release(completed)

    def abort(self) -> None:
        open_, self._open = self._open, []
        for txn in open_:
            self._sink.abort(txn)

    def close(self) -> None:
        self._sink.close()


class _Committer(Committer):
    """Knows the attempt."""

    def __init__(self, sink: TwoPhaseCommitSink[Txn], context: JobContext) -> None:
        self._sink = sink
        self._context = context

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return self._sink.recover(self._context, committables, confirmed)

    def abort_lingering(self) -> list[str]:
        return self._sink.abort_lingering(self._context)
