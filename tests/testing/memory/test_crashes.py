"""A crash is one call, and what comes out is what comes out without one."""

from __future__ import annotations

from typing import Any

import pytest
import two_sources
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.testing.memory.jobs import counting, upper
from twopc import ConfigurationError
from twopc.connect import JobDefinition
from twopc.sink import Outcome, Settled
from twopc.state import restore
from twopc.state.backend import Family
from twopc.testing import MemoryRun
from twopc.testing.memory import sink
from twopc.testing.memory.run import Moment
from twopc.testing.memory.topics import TransactionEnd

AFTER: tuple[Moment, ...] = ("processing", "pre-commit", "completion")

calls = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 3)),
        st.tuples(st.just("crash"), st.sampled_from(AFTER)),
        st.just(("checkpoint", "")),
        st.just(("read", "")),
    ),
    max_size=25,
)


def played(calls: list[tuple[str, Any]], crashing: bool, partitions: int, parallelism: int) -> list[tuple[Any, ...]]:
    """What comes out of these calls, with their crashes or without them, and the states at the end."""
    out: list[tuple[Any, ...]] = []
    with MemoryRun(counting, partitions=partitions, parallelism=parallelism) as run:

        def read() -> None:
            out.extend((record.partition, record.key, record.value) for record in run.read("out"))

        for number, (call, what) in enumerate(calls):
            match call:
                case "send":
                    run.send("in", number, f"k{what}")
                case "checkpoint":
                    run.checkpoint()
                case "read":
                    read()
                case "crash" if crashing:
                    run.crash(after=what)
        run.checkpoint()
        read()
        states = [run.state("count", f"k{key}") for key in range(4)]
    return [("states", *states), *sorted(out, key=repr)]


@pytest.mark.parametrize(("partitions", "parallelism"), [(1, 1), (3, 1), (4, 2)])
@given(calls=calls)
@settings(deadline=None, max_examples=40)
def test_crashes_at_any_call_change_nothing(calls: list[tuple[str, Any]], partitions: int, parallelism: int) -> None:
    assert played(calls, True, partitions, parallelism) == played(calls, False, partitions, parallelism)


@pytest.mark.parametrize("after", AFTER)
def test_all_output_of_a_crashed_interval_comes_once(after: Moment) -> None:
    with MemoryRun(upper) as run:
        run.send("in", b"a")
        run.crash(after=after)
        run.send("in", b"b")
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [b"A", b"B"]


def test_a_crash_after_the_completion_is_followed_by_the_commit() -> None:
    with MemoryRun(upper) as run:
        run.send("in", b"a")
        run.crash(after="completion")
        assert [record.value for record in run.read("out")] == [b"A"]


@pytest.mark.parametrize("after", ["processing", "pre-commit"])
def test_what_had_not_completed_is_not_to_be_seen_after_a_crash(after: Moment) -> None:
    with MemoryRun(upper) as run:
        run.send("in", b"a")
        run.crash(after=after)
        assert run.read("out") == []


def test_a_state_goes_back_to_the_last_checkpoint() -> None:
    with MemoryRun(counting) as run:
        run.send("in", 1, "a")
        run.checkpoint()
        run.send("in", 2, "a")
        run.crash()
        assert run.state("count", "a") == 1
        run.checkpoint()
        assert [record.value["seen"] for record in run.read("out")] == [1, 2]


def test_several_sinks_show_a_record_all_or_none_after_a_crash() -> None:
    with MemoryRun(two_sources.job) as run:
        for after in AFTER:
            run.send("orders-web", {"cents": 20_000})
            run.crash(after=after)
            assert len(run.read("orders-all")) == len(run.read("orders-large"))
        run.checkpoint()


def test_a_crash_at_no_such_moment_is_refused() -> None:
    with MemoryRun(upper) as run, pytest.raises(ConfigurationError, match="processing, pre-commit, completion"):
        run.crash(after="commit")  # type: ignore[arg-type]


def test_a_crash_may_follow_a_crash() -> None:
    with MemoryRun(counting, partitions=2, parallelism=2) as run:
        run.send("in", 1, "a")
        for after in AFTER * 2:
            run.crash(after=after)
        run.checkpoint()
        assert [record.value["seen"] for record in run.read("out")] == [1]


# What is broken is noticed.


def test_a_state_that_is_not_restored_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = restore._fetched

    def emptied(*arguments: Any) -> Any:
        backend = opened(*arguments)
        backend.delete_prefix(Family.KEYED, b"")
        return backend

    monkeypatch.setattr(restore, "_fetched", emptied)
    with pytest.raises(AssertionError):
        test_a_state_goes_back_to_the_last_checkpoint()


def test_output_of_an_aborted_transaction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def committing(self: sink.MemoryCommitter) -> list[str]:
        for txn in self._topics.lingering(self._prefix, self._context.attempt):
            txn.ending = TransactionEnd.COMMITTED
        return []

    monkeypatch.setattr(sink.MemoryCommitter, "abort_lingering", committing)
    with pytest.raises(AssertionError):
        test_all_output_of_a_crashed_interval_comes_once("processing")


def test_output_that_is_seen_before_its_checkpoint_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    write = sink.EncodedRecords.write
    monkeypatch.setattr(sink.EncodedRecords, "write", lambda self, batch, txn: write(self, batch, None))
    with pytest.raises(AssertionError):
        test_what_had_not_completed_is_not_to_be_seen_after_a_crash("processing")


def test_pre_committed_output_that_is_not_settled_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sink.MemoryCommitter,
        "settle",
        lambda self, items, confirmed: [Settled(item, Outcome.ALREADY_COMMITTED, "") for item in items],
    )
    with pytest.raises(AssertionError):
        test_a_crash_after_the_completion_is_followed_by_the_commit()


def test_a_definition_is_taken_as_well_as_a_job() -> None:
    definition: JobDefinition = upper.definition()
    with MemoryRun(definition) as run:
        run.send("in", b"a")
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [b"A"]
