"""The table sink, killed before each line of its own: the next attempt finds every value once, and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import table_sink
from table_sink import NEXT_MANIFEST, TableSink, read_table

from tests.examples.kills import killed_before
from tests.examples.test_file_sink import context
from tests.examples.test_killed_file_sink import folders
from tests.examples.test_table_sink import commit, data_files, opened, pre_committed
from twopc.connect import Committable, PreCommit
from twopc.protocol.ids import CheckpointId
from twopc.testing.rows import batch_of_values

Checkpoints = dict[int, list[Committable]]


def recovered(folder: Path, outstanding: Checkpoints) -> None:
    """Do what the driver of the next attempt does: settle, commit globally what is outstanding, sweep."""
    sink = TableSink(folder)
    sink.recover(context(2), [item for items in outstanding.values() for item in items], frozenset())
    for checkpoint, items in outstanding.items():
        commit(folder, checkpoint, *items, attempt=2)
    sink.abort_lingering(context(2))


def two_checkpoints(folder: Path) -> Checkpoints:
    """Of two subtasks; a third checkpoint was pre-committed and never completed."""
    subtasks = [opened(folder, subtask=number) for number in (0, 1)]
    due = {n: [pre_committed(each, n, f"{n}-{place}") for place, each in enumerate(subtasks)] for n in (1, 2)}
    pre_committed(subtasks[0], 3, "never completed")
    return due


def killed_everywhere(tmp_path: Path, act: Callable[[Path, Checkpoints], object]) -> int:
    """Kill `act` before each line that it runs; what a reader sees meanwhile is always of whole checkpoints."""
    for line, folder in folders(tmp_path):
        due = two_checkpoints(folder)
        was_killed = killed_before(line, table_sink, lambda: act(folder, due))  # noqa: B023
        seen = list(read_table(folder))
        assert seen in ([], ["1-0", "1-1"], ["1-0", "1-1", "2-0", "2-1"]), f"killed before line {line}"
        recovered(folder, due)
        assert list(read_table(folder)) == ["1-0", "1-1", "2-0", "2-1"], f"killed before line {line}"
        assert data_files(folder) == sorted(item.name for items in due.values() for item in items)
        assert not (folder / NEXT_MANIFEST).exists()
        if not was_killed:
            return line - 1
    raise AssertionError


def test_killed_before_each_line_of_its_global_commits_they_are_done_by_the_next_attempt(tmp_path: Path) -> None:
    def act(folder: Path, due: Checkpoints) -> None:
        for checkpoint, items in due.items():
            commit(folder, checkpoint, *items)

    assert killed_everywhere(tmp_path, act) > 40


def test_killed_before_each_line_of_a_recovery_it_is_recovered_by_the_next_attempt(tmp_path: Path) -> None:
    assert killed_everywhere(tmp_path, recovered) > 40


def test_killed_before_each_line_of_a_pre_commit_it_leaves_nothing(tmp_path: Path) -> None:
    for line, folder in folders(tmp_path):
        sink = opened(folder)
        txn = sink.begin()
        sink.write(txn, batch_of_values("never acknowledged"))
        request = PreCommit(CheckpointId(1), (), None)
        was_killed = killed_before(line, table_sink, lambda: sink.pre_commit(txn, request))  # noqa: B023
        txn.stream.close()
        recovered(folder, {})
        assert (list(read_table(folder)), data_files(folder)) == ([], []), f"killed before line {line}"
        if not was_killed:
            assert line > 8
            return
