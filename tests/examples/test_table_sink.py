from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from table_sink import LOCK, MANIFEST, Manifest, TableSink, read_table

from tests.examples.test_file_sink import complete, context
from twopc import ConfigurationError
from twopc.connect import Committable, Outcome, PreCommit
from twopc.errors import CheckpointCorrupted, TransactionLost, Unavailable
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.testing.rows import batch_of_values


def opened(folder: Path, attempt: int = 1, subtask: int = 0) -> TableSink:
    sink = TableSink(folder)
    sink.open(context(attempt, subtask))
    return sink


def pre_committed(sink: TableSink, checkpoint: int, *values: Any) -> Committable:
    txn = sink.begin()
    sink.write(txn, batch_of_values(*values))
    committable = sink.pre_commit(txn, PreCommit(CheckpointId(checkpoint), (), None))
    assert committable is not None
    return committable


def commit(folder: Path, checkpoint: int, *committables: Committable, attempt: int = 1, job: str = "words") -> None:
    """Do what the driver does when a checkpoint has completed."""
    with TableSink(folder).open_global_committer(context(attempt, job=job)) as committer:
        committer.commit(CheckpointId(checkpoint), committables)


def data_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.jsonl"))


def test_a_table_without_a_manifest_is_empty(tmp_path: Path) -> None:
    assert list(read_table(tmp_path)) == []


def test_nothing_is_in_the_table_before_the_global_commit_and_all_of_all_subtasks_after_it(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path, subtask=1)
    items = [pre_committed(first, 1, {"n": 1}, None), pre_committed(second, 1, "x")]
    first.commit(items[0], complete(1))
    assert list(read_table(tmp_path)) == []
    commit(tmp_path, 1, *items)
    assert list(read_table(tmp_path)) == [{"n": 1}, None, "x"]


def test_committing_a_checkpoint_twice_is_committing_it_once_also_when_later_ones_are(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    one, two = pre_committed(sink, 1, 1), pre_committed(sink, 2, 2)
    for checkpoint, item in ((1, one), (1, one), (2, two), (1, one)):
        commit(tmp_path, checkpoint, item)
    assert list(read_table(tmp_path)) == [1, 2]
    assert Manifest.read(tmp_path).checkpoint == 2


def test_while_another_process_commits_nobody_else_does(tmp_path: Path) -> None:
    item = pre_committed(opened(tmp_path), 1, 1)
    with (tmp_path / LOCK).open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="another process is committing"):
            commit(tmp_path, 1, item)
    commit(tmp_path, 1, item)
    assert list(read_table(tmp_path)) == [1]


def test_a_data_file_that_is_gone_or_cut_short_is_lost(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    gone, short = pre_committed(sink, 1, 1), pre_committed(sink, 1, 1, 2)
    (tmp_path / gone.name).unlink()
    (tmp_path / short.name).write_bytes(b"1\n")
    settled = sink.recover(context(2), [gone, short], frozenset())
    assert [each.outcome for each in settled] == [Outcome.LOST, Outcome.LOST]
    with pytest.raises(TransactionLost, match="checkpoint 1 has completed, but"):
        commit(tmp_path, 1, gone)
    assert list(read_table(tmp_path)) == []


def test_recovery_says_of_each_data_file_whether_the_table_has_it(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    one, two = pre_committed(sink, 1, 1), pre_committed(sink, 2, 2)
    commit(tmp_path, 1, one)
    settled = sink.recover(context(2), [one, two], frozenset())
    assert [each.outcome for each in settled] == [Outcome.ALREADY_COMMITTED, Outcome.COMMITTED]


def test_what_earlier_attempts_left_and_the_table_does_not_have_is_removed_and_nothing_else(tmp_path: Path) -> None:
    sink = opened(tmp_path, attempt=1)
    committed, left = pre_committed(sink, 1, 1), pre_committed(sink, 2, 2)
    commit(tmp_path, 1, committed)
    current = opened(tmp_path, attempt=2).begin()
    current.stream.close()
    assert sink.abort_lingering(context(2)) == [left.name]
    assert data_files(tmp_path) == [committed.name, current.path.name]


def test_a_table_of_another_job_or_run_is_not_written_to(tmp_path: Path) -> None:
    item = pre_committed(opened(tmp_path), 1, 1)
    commit(tmp_path, 1, item)
    with pytest.raises(ConfigurationError, match="is of job 'words'"):
        commit(tmp_path, 2, job="letters")
    other = Committable("words.1.0.9.jsonl", CheckpointId(1), SubtaskIndex(0), {"size": 1})
    with pytest.raises(ConfigurationError, match="from another run"):
        commit(tmp_path, 1, other)


def test_a_name_in_a_checkpoint_or_manifest_can_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    outside = Committable("../x", CheckpointId(1), SubtaskIndex(0), {"size": 0})
    with pytest.raises(CheckpointCorrupted, match="not a file directly in"):
        commit(tmp_path, 1, outside)
    (tmp_path / MANIFEST).write_text(json.dumps({"job": "words", "checkpoint": 1, "files": {"../x": 0}}))
    with pytest.raises(CheckpointCorrupted, match="not a file directly in"):
        list(read_table(tmp_path))
