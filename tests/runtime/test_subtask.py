"""The subtask's loop with a scripted source, a recording sink and a test that plays the coordinator."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from twopc.clock import Clock, ManualClock, SystemClock
from twopc.errors import CheckpointDeclined, ConfigurationError, Fenced, TransactionLost
from twopc.operators import Chain
from twopc.protocol.facts import Committable, PartitionPosition, StateHandle
from twopc.protocol.ids import CheckpointId, Position, SubtaskIndex, TopicPartition
from twopc.protocol.messages import (
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    Drain,
    EndOfInput,
    FencedOff,
    Finish,
    Progress,
    Trigger,
)
from twopc.record import Batch
from twopc.runtime.link import MemoryLink
from twopc.runtime.state import SubtaskStore
from twopc.runtime.subtask import Parts, Subtask
from twopc.sink import JobContext, PreCommit, Settled, TwoPhaseCommitSink
from twopc.source import SourceReader
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend

PARTITION = TopicPartition("in", 0)


class Inline(Executor):
    """Runs a task at once, on the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass
class ScriptedReader(SourceReader):
    """Gives one batch per poll, then nothing."""

    batches: list[list[bytes]]
    endless: bool = False
    read: int = 0
    committed: list[tuple[int, int]] = field(default_factory=list)

    def poll(self, timeout: float, most: int) -> Batch | None:
        if not self.batches:
            return None
        values = self.batches.pop(0)
        self.read += len(values)
        return Batch([], list(values), keys=list(values))

    def positions(self) -> tuple[PartitionPosition, ...]:
        return (PartitionPosition(PARTITION, "topic-id", Position(self.read)),)

    def finished(self) -> bool:
        return not self.endless and not self.batches

    def bound(self) -> None:
        self.endless = False

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[PartitionPosition]) -> None:
        self.committed.append((checkpoint_id, positions[0].position))


@dataclass
class RecordingSink(TwoPhaseCommitSink[list[bytes]]):
    """Keeps transactions as lists; says what was done, in order."""

    log: list[str] = field(default_factory=list)
    fail_pre_commit: Exception | None = None
    fail_commit: Exception | None = None

    def begin(self) -> list[bytes]:
        self.log.append("begin")
        return []

    def write(self, txn: list[bytes], batch: Batch) -> int:
        txn.extend(batch.values)
        return len(batch)

    def pre_commit(self, txn: list[bytes], request: PreCommit) -> Committable | None:
        if self.fail_pre_commit is not None:
            raise self.fail_pre_commit
        if not txn:
            return None
        self.log.append(f"pre-commit {request.checkpoint_id} {b''.join(txn).decode()}")
        return Committable(f"t@{request.checkpoint_id}", request.checkpoint_id, SubtaskIndex(0), {})

    def commit(self, committable: Committable, proof: Complete) -> None:
        if self.fail_commit is not None:
            raise self.fail_commit
        self.log.append(f"commit {committable.name} by {proof.checkpoint_id}")

    def release(self, completed: CheckpointId) -> None:
        self.log.append(f"release {completed}")

    def abort(self, txn: list[bytes]) -> None:
        self.log.append("abort open")

    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        raise NotImplementedError


class WitnessingSink(RecordingSink):
    """Says that its transactions carry the positions."""

    @property
    def commits_positions(self) -> bool:
        return True


class FakeStorage:
    """Stores nothing; can refuse."""

    def __init__(self) -> None:
        self.refuse: str | None = None

    def put(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, local_folder: Path, key_count: int
    ) -> StateHandle:
        if self.refuse is not None:
            raise CheckpointDeclined(self.refuse)
        return StateHandle(f"chk-{checkpoint_id}/subtask-{subtask}", "digest", 1, 1)

    def put_changes(
        self, checkpoint_id: CheckpointId, subtask: SubtaskIndex, base: CheckpointId, written: bytes, key_count: int
    ) -> StateHandle:
        raise AssertionError("the state in memory gives no account of its changes")


@dataclass
class Stage:
    """A subtask, and what surrounds it."""

    reader: ScriptedReader
    sink: RecordingSink
    storage: FakeStorage
    link: MemoryLink
    subtask: Subtask

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.subtask.step()

    def sent(self, kind: type) -> list[Any]:
        return [message for message in self.link.sent if isinstance(message, kind)]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Stage]:
    def build(
        batches: list[list[bytes]],
        *,
        endless: bool = True,
        sink: RecordingSink | None = None,
        clock: Clock | None = None,
    ) -> Stage:
        reader = ScriptedReader(batches, endless)
        sink = sink or RecordingSink()
        storage = FakeStorage()
        link, backend = MemoryLink(), MemoryBackend()
        parts = Parts(
            reader=reader,
            chain=Chain((), KeyedState(backend)),
            sink=sink,
            store=SubtaskStore(SubtaskIndex(0), backend, storage, tmp_path),
            link=link,
            clock=clock or SystemClock(),
            snapshot_executor=Inline(),
            store_executor=Inline(),
            commit_executor=Inline(),
        )
        subtask = Subtask(SubtaskIndex(0), parts, group="g", silence_limit_seconds=60)
        subtask.begin()
        return Stage(reader, sink, storage, link, subtask)

    return build


def trigger(stage: Stage, number: int, *, final: bool = False) -> None:
    stage.link.deliver(Trigger(CheckpointId(number), final))


def complete(stage: Stage, number: int) -> None:
    stage.link.deliver(Complete(CheckpointId(number)))


def test_a_checkpoint_holds_exactly_what_was_read_before_its_trigger(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"], [b"c"]])
    stage.steps(2)
    trigger(stage, 1)
    stage.steps(1)
    (ack,) = stage.sent(Ack)
    assert "pre-commit 1 ab" in stage.sink.log
    assert ack.snapshot.positions == (PartitionPosition(PARTITION, "topic-id", Position(2)),)
    assert [committable.name for committable in ack.snapshot.committables] == ["t@1"]


def test_nothing_is_committed_before_the_completion(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(3)
    assert not [line for line in stage.sink.log if line.startswith("commit")]


def test_a_completion_commits_and_is_reported(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    trigger(stage, 1)
    complete(stage, 1)
    stage.steps(2)
    assert stage.sink.log[-2:] == ["commit t@1 by 1", "release 1"]
    assert stage.sent(Committed) == [Committed(CheckpointId(1))]


def test_a_lost_completion_is_subsumed_by_the_next(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    trigger(stage, 2)
    complete(stage, 2)
    stage.steps(2)
    assert [line for line in stage.sink.log if line.startswith("commit")] == ["commit t@1 by 2", "commit t@2 by 2"]


def test_an_aborted_checkpoint_is_committed_with_the_next_completed_one(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    stage.link.deliver(Abort(CheckpointId(1), "expired"))
    trigger(stage, 2)
    stage.steps(1)
    ack = stage.sent(Ack)[-1]
    assert [committable.name for committable in ack.snapshot.committables] == ["t@1", "t@2"]
    assert "abort open" not in stage.sink.log


def test_an_interval_without_output_makes_no_transaction_but_commits_its_positions(make: Callable[..., Stage]) -> None:
    stage = make([])
    trigger(stage, 1)
    complete(stage, 1)
    stage.steps(2)
    assert stage.sink.log == ["begin", "release 1"]
    assert stage.reader.committed == [(1, 0)]


def test_positions_that_the_sink_commits_are_not_committed_beside_it(make: Callable[..., Stage]) -> None:
    stage = make([], sink=WitnessingSink())
    trigger(stage, 1)
    complete(stage, 1)
    stage.steps(2)
    assert stage.sent(Committed) == [Committed(CheckpointId(1))]
    assert stage.reader.committed == []


def test_a_flush_that_fails_for_this_checkpoint_declines_it_and_the_loop_goes_on(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]], sink=RecordingSink(fail_pre_commit=CheckpointDeclined("flush timed out")))
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    assert stage.sent(Decline) == [Decline(CheckpointId(1), "flush timed out")]
    assert stage.sent(Ack) == []
    assert stage.reader.read == 2


def test_a_storage_that_refuses_declines_and_keeps_the_transaction_pending(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.storage.refuse = "disk full"
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    stage.storage.refuse = None
    trigger(stage, 2)
    stage.steps(1)
    assert stage.sent(Decline) == [Decline(CheckpointId(1), "disk full")]
    assert [committable.name for committable in stage.sent(Ack)[0].snapshot.committables] == ["t@1"]


def test_a_lost_transaction_ends_the_subtask(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], sink=RecordingSink(fail_commit=TransactionLost("gone")))
    stage.steps(1)
    trigger(stage, 1)
    complete(stage, 1)
    with pytest.raises(TransactionLost, match="gone"):
        stage.steps(1)
    assert stage.sent(Committed) == []


def test_a_drain_reads_to_the_end_that_there_is_and_says_so(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"]], endless=True)
    stage.link.deliver(Drain())
    stage.steps(1)
    assert stage.sent(EndOfInput) == []
    stage.link.deliver(Drain())
    stage.steps(3)
    assert (stage.sent(EndOfInput), stage.reader.read) == ([EndOfInput()], 2)


def test_a_source_without_an_end_refuses_to_be_drained(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=True)
    stage.link.deliver(Drain())
    with (
        patch.object(ScriptedReader, "bound", SourceReader.bound),
        pytest.raises(ConfigurationError, match=r"ScriptedReader can't tell where its input ends.*without --drain"),
    ):
        stage.steps(1)


def test_the_end_of_the_input_is_said_once(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=False)
    stage.steps(4)
    assert stage.sent(EndOfInput) == [EndOfInput()]


def test_a_subtask_at_its_end_takes_part_in_every_later_checkpoint(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]], endless=False)
    stage.steps(2)
    for number in (1, 2):
        trigger(stage, number)
        complete(stage, number)
        stage.steps(2)
    assert [ack.snapshot.finished for ack in stage.sent(Ack)] == [True, True]
    assert stage.sent(Committed) == [Committed(CheckpointId(1)), Committed(CheckpointId(2))]


def test_a_subtask_that_was_restored_at_its_end_reads_nothing_and_takes_part(make: Callable[..., Stage]) -> None:
    stage = make([], endless=False)
    trigger(stage, 1)
    stage.steps(2)
    assert stage.sent(EndOfInput) == [EndOfInput()]
    assert [ack.snapshot.finished for ack in stage.sent(Ack)] == [True]
    assert stage.reader.read == 0


def test_of_two_checkpoints_in_flight_the_first_completion_commits_the_first_transaction_only(
    make: Callable[..., Stage],
) -> None:
    stage = make([[b"a"], [b"b"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    trigger(stage, 2)
    stage.steps(1)
    complete(stage, 1)
    stage.steps(1)
    assert [line for line in stage.sink.log if line.startswith("commit")] == ["commit t@1 by 1"]
    second = stage.sent(Ack)[1]
    assert [committable.name for committable in second.snapshot.committables] == ["t@1", "t@2"]


def test_after_a_final_trigger_nothing_more_is_read(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"], [b"b"], [b"c"]])
    stage.steps(1)
    trigger(stage, 1, final=True)
    stage.steps(3)
    assert stage.reader.read == 1


def test_finish_ends_the_run_and_aborts_the_open_transaction_only(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.link.deliver(Finish())
    stage.subtask.run()
    assert stage.sink.log[-1] == "abort open"


def test_being_fenced_ends_the_run_without_a_commit(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    trigger(stage, 1)
    stage.steps(1)
    stage.link.deliver(FencedOff("attempt 2 runs"))
    complete(stage, 1)
    with pytest.raises(Fenced, match="attempt 2 runs"):
        stage.subtask.run()
    assert not [line for line in stage.sink.log if line.startswith("commit")]


def test_progress_names_the_open_and_the_pending_transactions(make: Callable[..., Stage]) -> None:
    stage = make([[b"a"]])
    stage.steps(1)
    progress = stage.sent(Progress)[0]
    assert progress.records_in == 1
    assert progress.pending_transactions == ()


class SlowSink(RecordingSink):
    """Takes 7 ms to pre-commit."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def pre_commit(self, txn: list[bytes], request: PreCommit) -> Committable | None:
        self._clock.advance(7)
        return super().pre_commit(txn, request)


def test_an_acknowledgement_tells_how_long_each_phase_took(make: Callable[..., Stage]) -> None:
    clock = ManualClock()
    stage = make([[b"a"]], sink=SlowSink(clock), clock=clock)
    store: Any = SubtaskStore

    def slow(method: Any, milliseconds: int) -> Any:
        def run(*arguments: Any) -> Any:
            clock.advance(milliseconds)
            return method(*arguments)

        return run

    trigger(stage, 1)
    with (
        patch.object(store, "take", slow(store.take, 5)),
        patch.object(store, "write", slow(store.write, 20)),
        patch.object(store, "put", slow(store.put, 30)),
    ):
        stage.steps(1)
    (ack,) = stage.sent(Ack)
    told = (ack.pre_commit_ms, ack.pause_ms, ack.write_ms, ack.store_ms)
    assert [round(each, 3) for each in told] == [7, 12, 20, 50]
