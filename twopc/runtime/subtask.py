"""One subtask: poll, process, write; on a trigger snapshot and pre-commit; on completion commit.

One thread, the data loop, owns the readers, the dataflow, the state and the open transaction. Beside it snapshots are
written, stored and acknowledged (`twopc.runtime.snapshot_pipeline`), and transactions committed
(`twopc.runtime.commit_queue`). Their results come back to the loop through a queue. Every decision is
`twopc.protocol.subtask_state`'s; this module carries it out.

Invariants:

- Nothing is acknowledged before the flush of the transaction and the storing of the snapshot both succeeded, nor
  before the input was seen to be the one that the positions are of, after they were taken.
- The next transaction is begun only after the pre-commit of the one before has returned.
- A checkpoint may find a batch cut short: its positions are those of the first records that wait in the dataflow.
- Ending for whatever reason aborts the open transaction only; pre-committed ones stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from queue import SimpleQueue
from typing import assert_never

from twopc.errors import CheckpointDeclined, Fenced, Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.operators import SinkOutput
from twopc.packed_column import PackedColumn
from twopc.protocol.facts import Committable, SplitPosition, SubtaskSnapshot
from twopc.protocol.figures import Figures
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Committed, EndOfInput, Progress, ToSubtask, Trigger
from twopc.protocol.subtask_state import (
    CommitPending,
    End,
    Ignore,
    PreCommitted,
    ReadToEnd,
    SubtaskState,
    TakeCheckpoint,
)
from twopc.runtime.batch_size import BatchSize
from twopc.runtime.commit_queue import CommitQueue
from twopc.runtime.dependencies import SubtaskDependencies
from twopc.runtime.figures import figures_of
from twopc.runtime.idle_numbers import IdleNumbers, Reading
from twopc.runtime.slow_function import SlowFunctionWatch
from twopc.runtime.snapshot_pipeline import SnapshotOf, SnapshotPipeline
from twopc.runtime.transaction_ages import TransactionAges
from twopc.sink import PreCommit

POLL_SECONDS = 0.01
"""How long one poll may wait for records; also how late a trigger may be noticed while there are none."""

COMPLETION_POLL_SECONDS = 0.005
"""The same while output waits for a completion: its readers wait as long."""

PROGRESS_SECONDS = 0.5

FIGURES_SECONDS = 5.0
"""How often a report says it operator by operator, split by split."""


class Subtask:
    """Runs until the coordinator says that the job has finished, or something fails."""

    def __init__(
        self,
        index: SubtaskIndex,
        deps: SubtaskDependencies,
        *,
        follower: str | None,
        silence_limit_seconds: float,
        base: CheckpointId = NO_CHECKPOINT,
        batch_size: BatchSize,
    ) -> None:
        self._index = index
        self._deps = deps
        self._follower = follower
        self._silence_limit = silence_limit_seconds
        self._state = SubtaskState(base)
        self._batch_size = batch_size
        self._watch = SlowFunctionWatch(deps.dataflow, deps.clock, self._send_slow)
        self._results: SimpleQueue[CommitPending | BaseException] = SimpleQueue()
        self._snapshots = SnapshotPipeline(
            index, deps.store, deps.link, deps.clock, deps.snapshot_executor, deps.store_executor, self._guarded
        )
        self._commits = CommitQueue(index, deps.outputs, deps.commit_executor, self._guarded, self._results.put)
        self._ended = False
        self._end_reported = False
        self._stages_reported = 0
        self._records_in = 0
        self._records_out = 0
        self._last_message_at = deps.clock.monotonic()
        self._progress_at = 0.0
        self._counted_at = -FIGURES_SECONDS
        self._ages = TransactionAges()
        self._progress = Progress(0, 0, None, None, ())
        self._idle = IdleNumbers(deps.dataflow.timed, deps.clock, deps.repartition_times)
        self._times_told: tuple[FollowedTime, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether the coordinator has said that the job has finished: no `step` follows."""
        return self._ended

    @contextmanager
    def running(self) -> Iterator[None]:
        """Between `begin` and the end, for whatever reason it comes: then the open transaction is aborted."""
        self.begin()
        try:
            with self._watch.watching():
                yield
        finally:
            self._deps.outputs.abort()

    def begin(self) -> None:
        """Open the first transaction; `step` may be called from now on."""
        self._begin_transaction()

    def step(self) -> None:
        """Do one turn of the loop: what was heard, what the executors found, one batch."""
        for message in self._deps.link.receive(0 if self._reads() else POLL_SECONDS):
            self._last_message_at = self._deps.clock.monotonic()
            self._on(message)
        self._take_results()
        if self._reads():
            self._move_batch()
        elif self._at_end():
            # Again and again: somebody may ask for a drain when the end is said, and before the final checkpoint.
            self._drain(self._deps.inputs.last_stage + 1)
            if not self._end_reported:
                self._end_reported = True
                self._deps.link.send(EndOfInput(self._deps.inputs.last_stage))
                self._send_progress(self._figures())
        if self._stages_reported < self._deps.inputs.last_stage:
            self._report_stage()
        self._report()

    def _reads(self) -> bool:
        return self._state.reading and not self._at_end()

    def _at_end(self) -> bool:
        # Records that wait in the chain are not written yet: a final checkpoint without them would lose them.
        return not self._deps.dataflow.waits and self._deps.inputs.at_end()

    def _report_stage(self) -> None:
        """Say that all of a stage before the last is read and written, once."""
        last, ended = self._deps.inputs.last_stage, self._deps.inputs.stages_at_end()
        if self._stages_reported < ended <= last and not self._deps.dataflow.waits:
            self._drain(ended)
            # What a drain that is asked for later would write there, the next stage may never read.
            self._deps.dataflow.timed.pass_over(self._deps.inputs.up_to(ended))
            self._stages_reported = ended
            self._deps.link.send(EndOfInput(ended - 1, last + 1 - ended))

    def _drain(self, stages: int) -> None:
        """All of these stages is read: in a drain, write what still waits there for its time. Nothing may follow."""
        if self._state.draining and self._state.reading:
            dataflow = self._deps.dataflow
            self._write(dataflow.drain(self._deps.inputs.up_to(stages)))

    def _move_batch(self) -> None:
        dataflow = self._deps.dataflow
        if self._times_told and not dataflow.waits:
            self._follow_times()
        read_seconds = 0.0 if dataflow.waits else self._read()
        if not dataflow.waits:
            return
        started = self._deps.clock.monotonic()
        with self._watch.batch():
            count, outputs = dataflow.advance()
        self._write(outputs)
        seconds = read_seconds + self._deps.clock.monotonic() - started
        self._batch_size.took(count, seconds, _packed_bytes(outputs))
        if self._snapshots.acknowledged:
            reached(CrashPoint.AFTER_NEXT_WRITE, checkpoint=self._snapshots.acknowledged, subtask=self._index)
            self._snapshots.acknowledged = NO_CHECKPOINT

    def _write(self, outputs: Sequence[SinkOutput]) -> None:
        sent = self._deps.repartition_times.sent(outputs)
        self._records_out += self._deps.outputs.write(sent, self._deps.dataflow.refuse)

    def _read(self) -> float:
        """Put the next batch into the dataflow, if there is one; return how long reading took, waiting left out."""
        wait = COMPLETION_POLL_SECONDS if self._state.awaits_completion else POLL_SECONDS
        started = self._deps.clock.monotonic()
        if self._deps.broadcasts is not None:
            self._deps.broadcasts.follow()
        turn = self._deps.inputs.poll(wait, self._batch_size.records)
        if turn is not None:
            self._records_in += turn.records
            self._deps.dataflow.put(self._deps.record_errors.read(turn))
        return max(0.0, self._deps.clock.monotonic() - started - wait)

    def _on(self, message: ToSubtask) -> None:
        if isinstance(message, Trigger):
            reached(CrashPoint.BEFORE_TRIGGER, checkpoint=message.checkpoint_id, subtask=self._index)
        action = self._state.on(message)
        match action:
            case TakeCheckpoint():
                self._take_checkpoint(action.trigger)
                if action.trigger.final:
                    self._send_progress(self._figures())
            case CommitPending():
                self._commits.begin(action)
            case ReadToEnd():
                self._deps.inputs.bound(action.stage)
            case End():
                if action.fenced is not None:
                    raise Fenced(action.fenced)
                self._ended = True
                self._send_progress(self._figures())
            case Ignore():
                pass
            case _:
                assert_never(action)

    def _take_checkpoint(self, trigger: Trigger) -> None:
        checkpoint_id = trigger.checkpoint_id
        started = self._deps.clock.monotonic()
        reached(CrashPoint.BEFORE_PRE_COMMIT, checkpoint=checkpoint_id, subtask=self._index)
        try:
            positions = self._deps.inputs.positions(self._deps.dataflow.waiting_rows)
            self._deps.inputs.check_input(checkpoint_id)
            self._deps.outputs.mark(self._deps.repartition_times.new_marks(trigger.times, positions))
            times = self._number_times(positions)
            self._write_back()
            self._pre_commit(checkpoint_id, positions)
            pre_committed = self._deps.clock.monotonic()
            reached(CrashPoint.BEFORE_SNAPSHOT, checkpoint=checkpoint_id, subtask=self._index)
            taken = self._deps.store.take(checkpoint_id, positions)
        except CheckpointDeclined as error:
            self._snapshots.decline(checkpoint_id, error)
            return
        maker = self._snapshot_maker(positions)
        self._snapshots.begin(checkpoint_id, taken, maker, started, pre_committed, times)
        self._times_told = trigger.times

    def _number_times(self, processed: tuple[SplitPosition, ...]) -> tuple[NumberTimes, ...]:
        """Return what partition numbers without records follow, as far as it is known here."""
        if not self._idle.counts:
            return ()
        inputs = self._deps.inputs
        # Of a batch that was cut, what waits is not processed.
        over = inputs.over() if not self._deps.dataflow.waits else frozenset[str]()
        self._idle.look(Reading(inputs.read_positions(), processed, inputs.split_lags(), inputs.caught_up(), over))
        return self._idle.times()

    def _follow_times(self) -> None:
        """Let numbers without records follow those that have some; nothing may wait in the graph."""
        # Nothing was read since it was looked at which those are.
        dataflow, behind = self._deps.dataflow, self._idle.behind(self._times_told)
        self._times_told = ()
        if behind:
            self._write(dataflow.follow_time(behind))

    def _write_back(self) -> None:
        """Before the flush of the transaction, because the producer sends by itself meanwhile."""
        try:
            self._deps.dataflow.write_back()
            self._deps.repartition_times.write_back()
        except OSError as error:
            raise CheckpointDeclined(f"the state could not be written: {error}") from error

    def _pre_commit(self, checkpoint_id: CheckpointId, positions: tuple[SplitPosition, ...]) -> None:
        committables: list[Committable] = []
        try:
            self._deps.outputs.pre_commit(PreCommit(checkpoint_id, positions, self._follower), committables.append)
        except CheckpointDeclined:
            # After another sink has pre-committed: that is committed with the next checkpoint that completes.
            if committables:
                self._ages.pre_committed(committable.name for committable in committables)
                self._state.pre_committed(PreCommitted(checkpoint_id, tuple(committables), positions))
                self._begin_transaction()
            raise
        reached(CrashPoint.AFTER_PRE_COMMIT, checkpoint=checkpoint_id, subtask=self._index)
        if committables:
            self._ages.pre_committed(committable.name for committable in committables)
        self._state.pre_committed(PreCommitted(checkpoint_id, tuple(committables), positions))
        self._begin_transaction()

    def _begin_transaction(self) -> None:
        self._deps.outputs.begin()
        self._ages.begun(self._deps.clock.now().unix_ms)

    def _snapshot_maker(self, positions: tuple[SplitPosition, ...]) -> SnapshotOf:
        """Fix everything but the state now, on the loop: what follows must not leak into this checkpoint."""
        committables, base = self._state.committables, self._state.base
        finished = self._deps.inputs.finished() and not self._deps.dataflow.waits
        outputs = self._deps.outputs.known()
        return lambda state: SubtaskSnapshot.of(self._index, positions, state, committables, finished, base, outputs)

    def _take_results(self) -> None:
        while not self._results.empty():
            result = self._results.get()
            if isinstance(result, BaseException):
                raise result
            self._after_commit(result)

    def _after_commit(self, work: CommitPending) -> None:
        checkpoint_id = work.proof.checkpoint_id
        self._state.committed(checkpoint_id)
        self._deps.outputs.release(checkpoint_id)
        if work.due and self._follower is None:
            self._deps.inputs.commit_positions(checkpoint_id, work.due[-1].positions)
        self._deps.link.send(Committed(checkpoint_id))
        reached(CrashPoint.AFTER_COMMITTED_SENT, checkpoint=checkpoint_id, subtask=self._index)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Bring what goes wrong beside the loop back to the loop, which then fails with it."""
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by the data loop
            self._results.put(error)

    def _report(self) -> None:
        now = self._deps.clock.monotonic()
        silence = now - self._last_message_at
        if silence > self._silence_limit:
            raise Unavailable(
                f"subtask {self._index} has heard nothing from the coordinator for {silence:.0f} s, so no "
                "checkpoint can complete: is the coordinator running, and reachable from this machine?"
            )
        if now - self._progress_at >= PROGRESS_SECONDS:
            self._send_progress(self._figures_due(now))

    def _send_progress(self, figures: Figures | None) -> None:
        self._progress_at = self._deps.clock.monotonic()
        self._progress = Progress(
            records_in=self._records_in,
            records_out=self._records_out,
            lag=self._lag(),
            open_transaction=self._deps.outputs.open_transaction,
            pending_transactions=tuple(committable.name for committable in self._state.committables),
            new_record_errors=self._deps.record_errors.take_new(),
            figures=figures,
        )
        self._deps.link.send(self._progress)

    def _figures_due(self, now: float) -> Figures | None:
        """Return all of them now and then, and in between those of what went wrong."""
        if now - self._counted_at >= FIGURES_SECONDS:
            return self._figures()
        wrong = self._deps.record_errors.figures()
        return wrong if any(wrong.values()) else None

    def _figures(self) -> Figures:
        self._counted_at = self._deps.clock.monotonic()
        names = (committable.name for committable in self._state.committables)
        return figures_of(self._deps, self._batch_size, self._ages.oldest(names))

    def _lag(self) -> int | None:
        own, broadcasts = self._deps.inputs.lag(), self._deps.broadcasts
        return own if own is None or broadcasts is None else own + broadcasts.lag()

    def _send_slow(self, slow: str) -> None:
        """Say it for the loop, which can't."""
        self._deps.link.send(replace(self._progress, slow=slow))


def _packed_bytes(outputs: Sequence[SinkOutput]) -> int | None:
    """Return how many bytes the values have that came out; None where there are objects among them, or none at all."""
    columns = [output.batch.value_column for output in outputs]
    packed = [column for column in columns if isinstance(column, PackedColumn)]
    return sum(column.size() for column in packed) if packed and len(packed) == len(columns) else None
