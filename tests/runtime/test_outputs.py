from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from twopc.errors import CheckpointDeclined
from twopc.operators import SinkOutput
from twopc.protocol.facts import Committable, KnownOutput
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.runtime.outputs import Outputs
from twopc.sink import PreCommit, SinkWriter
from twopc.testing.rows import batch_of_values
from twopc.transaction_group import GroupWriter


class Counting(SinkWriter):
    """Counts the records of each transaction; may decline."""

    def __init__(self, name: str, log: list[str], declines: bool = False) -> None:
        self.name, self.log, self.declines = name, log, declines
        self.records: int | None = None
        self.bytes: tuple[int, ...] = ()

    def bytes_written(self) -> tuple[int, ...]:
        return self.bytes

    @property
    def open_transaction(self) -> str | None:
        return None if self.records is None else self.name

    def begin(self) -> None:
        self.records = 0

    def write(self, batch: Batch) -> int:
        assert self.records is not None
        self.records += len(batch)
        return len(batch)

    def pre_commit(self, request: PreCommit) -> Committable | None:
        if self.declines:
            raise CheckpointDeclined("not now")
        name = f"{self.name}@{request.checkpoint_id}:{self.records}"
        self.records = None
        return Committable(name, request.checkpoint_id, SubtaskIndex(0), {})

    def commit(self, committable: Committable, proof: Complete) -> None:
        self.log.append(f"{self.name} commits {committable.name}")

    def known_outputs(self, earlier: Sequence[KnownOutput]) -> list[KnownOutput]:
        return [*earlier, KnownOutput(self.name, 1)]

    def abort(self) -> None:
        self.log.append(f"{self.name} aborts")


Make = Callable[[bool], Outputs]


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def make(log: list[str]) -> Make:
    def build(declines: bool) -> Outputs:
        one, other = Counting("one", log), Counting("other", log, declines)
        outputs = Outputs(
            [GroupWriter("1", one, {"a": one.write, "b": one.write}), GroupWriter("2", other, {"c": other.write})]
        )
        outputs.begin()
        return outputs

    return build


REQUEST = PreCommit(CheckpointId(1), (), None)


def test_every_sink_writes_into_the_transaction_of_its_group(make: Make, log: list[str]) -> None:
    outputs, done = make(False), list[Committable]()
    assert outputs.write([SinkOutput(sink, batch_of_values(1, 2)) for sink in ("a", "b", "c")]) == 6
    assert outputs.open_transaction == "one, other"
    outputs.pre_commit(REQUEST, done.append)
    assert [(item.name, item.group) for item in done] == [("one@1:4", "1"), ("other@1:2", "2")]
    for item in done:
        outputs.commit(item, Complete(CheckpointId(1)))
    assert log == ["one commits one@1:4", "other commits other@1:2"]


def test_a_committable_says_whether_its_job_has_one_group_only(make: Make, log: list[str]) -> None:
    of_two, alone = list[Committable](), list[Committable]()
    make(False).pre_commit(REQUEST, of_two.append)
    only = Counting("only", log)
    outputs = Outputs([GroupWriter("1", only, {"a": only.write})])
    outputs.begin()
    outputs.pre_commit(REQUEST, alone.append)
    assert [item.is_sole for item in (*of_two, *alone)] == [False, False, True]


def test_what_one_group_pre_committed_is_known_though_another_declines(make: Make) -> None:
    outputs, done = make(True), list[Committable]()
    with pytest.raises(CheckpointDeclined):
        outputs.pre_commit(REQUEST, done.append)
    assert [item.group for item in done] == ["1"]
    outputs.begin()
    assert outputs.write([SinkOutput("a", batch_of_values(1))]) == 1


def test_every_open_transaction_is_aborted(make: Make, log: list[str]) -> None:
    make(False).abort()
    assert log == ["one aborts", "other aborts"]


def test_what_each_sink_was_given_is_counted_and_one_that_was_given_nothing_is_there(make: Make) -> None:
    outputs = make(False)
    assert outputs.written == {"a": 0, "b": 0, "c": 0}
    outputs.write([SinkOutput("a", batch_of_values(1, 2)), SinkOutput("c", batch_of_values(1))])
    outputs.write([SinkOutput("a", batch_of_values(3))])
    assert outputs.written == {"a": 3, "b": 0, "c": 1}


def test_bytes_are_told_by_sink_and_of_none_that_does_not_count() -> None:
    one, other = Counting("one", []), Counting("other", [])
    one.bytes = (10, 20)
    outputs = Outputs(
        [GroupWriter("1", one, {"a": one.write, "b": one.write}), GroupWriter("2", other, {"c": other.write})]
    )
    assert outputs.bytes_written() == {"a": 10, "b": 20}


def test_what_a_writer_knows_of_its_outputs_is_named_by_its_group_and_so_is_what_it_had_restored() -> None:
    one, other = Counting("one", []), Counting("other", [])
    restored = [KnownOutput("x", 1, "2"), KnownOutput("x", 1, "2"), KnownOutput("y", 1, "gone")]
    outputs = Outputs([GroupWriter("1", one, {"a": one.write}), GroupWriter("2", other, {"c": other.write})], restored)
    assert [(each.group, each.name) for each in outputs.known()] == [("1", "one"), ("2", "x"), ("2", "other")]
