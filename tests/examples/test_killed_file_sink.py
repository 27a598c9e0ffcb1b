"""The file sink, killed before each line of its own: the next attempt finds every value once, and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import file_sink
import pytest
from file_sink import FileSink

from tests.examples.kills import killed_before
from tests.examples.test_file_sink import complete, context, hidden, opened, pre_committed, visible
from twopc.connect import Committable, PreCommit
from twopc.protocol.ids import CheckpointId
from twopc.testing.rows import batch_of_values

MOST_LINES = 200


def folders(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Yield the number of each line before which to kill, with a folder of its own."""
    for line in range(1, MOST_LINES):
        folder = tmp_path / str(line)
        folder.mkdir()
        yield line, folder
    pytest.fail(f"it runs more than {MOST_LINES} lines")


def recovered(folder: Path, *committables: Committable) -> None:
    """Do what the driver of the next attempt does."""
    FileSink(folder).recover(context(2), committables, frozenset())
    FileSink(folder).abort_lingering(context(2))


def killed_everywhere(tmp_path: Path, act: Callable[[Path, Committable], object]) -> int:
    """Kill `act`, given a pre-committed file, before each line that it runs; return how many kills there were."""
    for line, folder in folders(tmp_path):
        committable = pre_committed(opened(folder), 1, "a", "b")
        was_killed = killed_before(line, file_sink, lambda: act(folder, committable))  # noqa: B023
        recovered(folder, committable)
        assert (visible(folder), hidden(folder)) == (["a", "b"], 0), f"killed before line {line}"
        if not was_killed:
            return line - 1
    raise AssertionError


def test_killed_before_each_line_of_a_pre_commit_it_leaves_nothing(tmp_path: Path) -> None:
    for line, folder in folders(tmp_path):
        sink = opened(folder)
        txn = sink.begin()
        sink.write(txn, batch_of_values("never acknowledged"))
        request = PreCommit(CheckpointId(1), (), None)
        was_killed = killed_before(line, file_sink, lambda: sink.pre_commit(txn, request))  # noqa: B023
        txn.stream.close()
        recovered(folder)
        assert (visible(folder), hidden(folder)) == ([], 0), f"killed before line {line}"
        if not was_killed:
            assert line > 10
            return


def test_killed_before_each_line_of_a_commit_it_is_committed_by_the_next_attempt(tmp_path: Path) -> None:
    def commit(folder: Path, committable: Committable) -> None:
        FileSink(folder).commit(committable, complete(1))

    assert killed_everywhere(tmp_path, commit) > 10


def test_killed_before_each_line_of_a_recovery_it_is_recovered_by_the_next_attempt(tmp_path: Path) -> None:
    def recover(folder: Path, committable: Committable) -> None:
        recovered(folder, committable)

    assert killed_everywhere(tmp_path, recover) > 10
