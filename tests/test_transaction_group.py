"""Which sinks of a job write into one transaction, and how a subtask opens that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.sink import Committer, PreCommit, Settled, SharedTransaction, Sink, SinkWriter
from twopc.testing.rows import batch_of_values
from twopc.transaction_group import GroupWriter, TransactionGroup, transaction_groups

CONTEXT = JobContext("orders", AttemptId(1), 1, RunSettings())
ON_SUBTASK = SubtaskContext("orders", AttemptId(1), 1, RunSettings(), SubtaskIndex(0))


@dataclass
class Writer(SinkWriter):
    """Keeps what is written, by the name of the sink that it came through."""

    name: str
    written: list[tuple[str, int]] = field(default_factory=list)

    @property
    def open_transaction(self) -> str | None:
        return None

    def begin(self) -> None: ...
    def write(self, batch: Batch) -> int:
        self.written.append((self.name, len(batch)))
        return len(batch)

    def join(self, sink: Sink) -> Callable[[Batch], int]:
        assert isinstance(sink, Named)
        other = Writer(sink.name, self.written)
        return other.write

    def pre_commit(self, request: PreCommit) -> Committable | None: ...
    def commit(self, committable: Committable, proof: Complete) -> None: ...
    def abort(self) -> None: ...


class Deciding(Committer):
    def __init__(self, name: str) -> None:
        self.names = [name]

    def join(self, sink: Sink) -> None:
        assert isinstance(sink, Named)
        self.names.append(sink.name)

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return []


@dataclass
class Named(Sink):
    name: str
    shared: SharedTransaction | None = None

    def open_writer(self, context: SubtaskContext) -> Writer:
        return Writer(self.name)

    def open_committer(self, context: JobContext) -> Deciding:
        return Deciding(self.name)

    def shared_transaction(self, context: JobContext) -> SharedTransaction | None:
        return self.shared


HERE = SharedTransaction("kafka/one/orders", "one", {"linger.ms": 5})
SINKS = {"files": Named("files"), "good": Named("good", HERE), "bad": Named("bad", HERE)}


def test_sinks_that_share_a_transaction_are_one_group_and_any_other_is_one_of_its_own() -> None:
    assert transaction_groups(SINKS, CONTEXT) == (
        TransactionGroup("files", ("files",)),
        TransactionGroup("kafka/one/orders", ("good", "bad"), "one"),
    )


def test_every_sink_of_a_group_writes_through_its_one_writer() -> None:
    _, group = transaction_groups(SINKS, CONTEXT)
    opened = GroupWriter.open(group, SINKS, ON_SUBTASK)
    opened.write["good"](batch_of_values(1, 2))
    opened.write["bad"](batch_of_values(3))
    assert isinstance(opened.writer, Writer)
    assert opened.writer.written == [("good", 2), ("bad", 1)]


def test_one_committer_decides_for_every_sink_of_a_group() -> None:
    _, group = transaction_groups(SINKS, CONTEXT)
    committer = group.open_committer(SINKS, CONTEXT)
    assert isinstance(committer, Deciding)
    assert committer.names == ["good", "bad"]


def test_sinks_that_would_need_two_producers_for_one_transaction_are_refused_by_name() -> None:
    tuned = SharedTransaction(HERE.id, HERE.cluster, {"linger.ms": 50})
    with pytest.raises(ConfigurationError, match=r"sinks 'good' and 'bad' .* properties .* transactional_id_prefix"):
        transaction_groups(SINKS | {"bad": Named("bad", tuned)}, CONTEXT)


def test_a_shared_transaction_shows_none_of_its_settings() -> None:
    assert "hunter2" not in repr(SharedTransaction("kafka/one/orders", "one", {"sasl.password": "hunter2"}))


def test_a_writer_that_shares_with_nobody_says_so() -> None:
    class Alone(Writer):
        join = SinkWriter.join

    with pytest.raises(NotImplementedError, match="Alone shares its transactions with no other sink"):
        Alone("alone").join(SINKS["good"])
