from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from file_sink import FileSink

from twopc.config import RunSettings
from twopc.context import SubtaskContext
from twopc.errors import CheckpointCorrupted, ConfigurationError, TransactionLost, UserCodeError
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Complete
from twopc.sink import Outcome, PreCommit
from twopc.testing.rows import batch_of_values


def context(attempt: int = 1, subtask: int = 0, job: str = "words") -> SubtaskContext:
    return SubtaskContext(job, AttemptId(attempt), 2, RunSettings(), SubtaskIndex(subtask))


def opened(folder: Path, attempt: int = 1, subtask: int = 0) -> FileSink:
    sink = FileSink(folder)
    sink.open(context(attempt, subtask))
    return sink


def pre_committed(sink: FileSink, checkpoint: int, *values: Any) -> Committable:
    txn = sink.begin()
    sink.write(txn, batch_of_values(*values))
    committable = sink.pre_commit(txn, PreCommit(CheckpointId(checkpoint), (), None))
    assert committable is not None
    return committable


def complete(checkpoint: int) -> Complete:
    return Complete(CheckpointId(checkpoint))


def visible(folder: Path) -> list[Any]:
    files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def hidden(folder: Path) -> int:
    return sum(path.name.startswith(".") for path in folder.iterdir())


def test_nothing_is_visible_before_the_commit_and_all_after_it(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    committable = pre_committed(sink, 1, {"n": 1}, None, "x")
    assert visible(tmp_path) == []
    sink.commit(committable, complete(1))
    assert visible(tmp_path) == [{"n": 1}, None, "x"]
    assert hidden(tmp_path) == 0


def test_committing_twice_is_committing_once(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    committable = pre_committed(sink, 1, 1)
    sink.commit(committable, complete(1))
    sink.commit(committable, complete(1))
    assert visible(tmp_path) == [1]


def test_an_empty_transaction_makes_no_committable_and_stays_open(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    txn = sink.begin()
    assert sink.pre_commit(txn, PreCommit(CheckpointId(1), (), None)) is None
    assert sink.write(txn, batch_of_values(1)) == 1
    sink.abort(txn)


def test_two_subtasks_write_beside_each_other(tmp_path: Path) -> None:
    for subtask in (0, 1):
        sink = opened(tmp_path, subtask=subtask)
        sink.commit(pre_committed(sink, 1, subtask), complete(1))
    assert visible(tmp_path) == [0, 1]


def test_another_process_recovers_what_was_pre_committed_and_finds_it_done_the_second_time(tmp_path: Path) -> None:
    committable = from_json(Committable, to_json(pre_committed(opened(tmp_path), 1, 1, 2)))
    first = FileSink(tmp_path).recover(context(2), [committable], frozenset())
    again = FileSink(tmp_path).recover(context(3), [committable], frozenset())
    assert [settled.outcome for settled in first + again] == [Outcome.COMMITTED, Outcome.ALREADY_COMMITTED]
    assert visible(tmp_path) == [1, 2]


def test_a_file_that_is_gone_or_cut_short_is_lost(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    gone, short = pre_committed(sink, 1, 1), pre_committed(sink, 2, 1, 2)
    (tmp_path / gone.name).unlink()
    (tmp_path / short.name).write_bytes(b"1\n")
    settled = FileSink(tmp_path).recover(context(2), [gone, short], frozenset())
    assert [outcome.outcome for outcome in settled] == [Outcome.LOST, Outcome.LOST]
    assert visible(tmp_path) == []
    with pytest.raises(TransactionLost, match="checkpoint 2 has completed, but neither"):
        sink.commit(short, complete(2))


def test_a_confirmed_file_may_have_been_moved_away(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    committable = pre_committed(sink, 1, 1)
    sink.commit(committable, complete(1))
    (tmp_path / committable.payload["final"]).unlink()
    [settled] = FileSink(tmp_path).recover(context(2), [committable], frozenset({committable.name}))
    assert settled.outcome is Outcome.ALREADY_COMMITTED


def test_aborting_removes_the_open_file_and_no_pre_committed_one(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    committable = pre_committed(sink, 1, 1)
    txn = sink.begin()
    sink.write(txn, batch_of_values(2))
    sink.abort(txn)
    sink.commit(committable, complete(1))
    assert visible(tmp_path) == [1]
    assert hidden(tmp_path) == 0


def test_lingering_files_of_earlier_attempts_are_removed_and_no_others(tmp_path: Path) -> None:
    opened(tmp_path, attempt=1).begin().stream.close()
    opened(tmp_path, attempt=2).begin().stream.close()
    other = FileSink(tmp_path)
    other.open(context(1, job="words.1"))
    other.begin().stream.close()
    assert FileSink(tmp_path).abort_lingering(context(2)) == [".words.1.0.1.tmp"]
    assert hidden(tmp_path) == 2


def test_a_name_in_a_checkpoint_can_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    committable = Committable("../x", CheckpointId(1), SubtaskIndex(0), {"final": "y", "size": 0})
    with pytest.raises(CheckpointCorrupted, match="not a file directly in"):
        FileSink(tmp_path).recover(context(2), [committable], frozenset())


def test_a_file_of_a_run_whose_checkpoints_are_gone_is_not_overwritten(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.commit(pre_committed(sink, 1, "first run"), complete(1))
    sink = opened(tmp_path)
    with pytest.raises(ConfigurationError, match="from another run"):
        sink.commit(pre_committed(sink, 1, "second run"), complete(1))
    assert visible(tmp_path) == ["first run"]


def test_a_value_that_is_not_json_names_its_record(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    txn = sink.begin()
    with pytest.raises(UserCodeError, match=r"record in\[0\]@1: writing JSON failed: TypeError"):
        sink.write(txn, batch_of_values(1, b"bytes"))
    sink.abort(txn)
