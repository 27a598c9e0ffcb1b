"""A checkpoint that is opened from Python shows what was stored, and changes nothing."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.inspect.kit import LEFT, RIGHT, JobWithState
from tests.snapshots import changed
from tests.stored_job import JOB, TRIGGERED_MS, StoredJob, tree
from twopc.checkpoints.archive import pack
from twopc.checkpoints.copy import copy_checkpoint
from twopc.checkpoints.reference import locate
from twopc.errors import CheckpointCorrupted, ConfigurationError, UserCodeError
from twopc.inspect import Checkpoint, StateSize, open_checkpoint
from twopc.inspect.snapshots import OpenSnapshots
from twopc.kafka.positions.partition_position import offsets_of
from twopc.kafka.topic_partition import Position
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.serde import Avro, Bytes, Json, Serde, String
from twopc.state.entry_keys import entries_prefix, number_key
from twopc.state.forms import ListOf, MapOf, Timed, timed
from twopc.storage.local import LocalStore


def opened(job: JobWithState, reference: str | int = "latest", serdes: dict[str, Serde] | None = None) -> Checkpoint:
    return open_checkpoint(reference, checkpoint_dir=job.root, serdes=serdes)


def test_a_checkpoint_tells_positions_and_what_became_of_its_transactions(shared: JobWithState) -> None:
    with opened(shared) as checkpoint:
        assert (checkpoint.job, checkpoint.checkpoint_id, checkpoint.attempt) == (JOB, 1, 1)
        assert offsets_of(checkpoint.positions) == {LEFT: 100, RIGHT: 100}
        assert [(each.name, each.outcome) for each in checkpoint.transactions] == [
            ("txn-0-1", "confirmed"),
            ("txn-1-1", "confirmed"),
        ]
        assert [each.subtask for each in checkpoint.subtasks] == [0, 1]
        assert checkpoint.place == str(shared.folder / "chk-1")


def test_a_checkpoint_tells_when_it_went_through_which_phase(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint()
    job.checkpoint(confirmed=False)
    with open_checkpoint(1, checkpoint_dir=job.root) as first, open_checkpoint(2, checkpoint_dir=job.root) as second:
        told = first.times
        since = (told.acknowledged_ms, told.completed_ms, told.confirmed_ms)
        assert [each and each - TRIGGERED_MS for each in since] == [250, 253, 270]
        assert dict(told.subtasks) == {SubtaskIndex(index): each for index, each in enumerate(job.times)}
        assert told.subtasks[SubtaskIndex(0)].waited_ms == 215 - 12 - 200
        assert (second.times.completed_ms, second.times.confirmed_ms) == (None, None)


def test_a_transaction_that_nobody_confirmed_is_outstanding_and_one_given_up_is_lost(job: JobWithState) -> None:
    second = job.checkpoint(confirmed=False)
    job.heal(second, subtask=1, base=second)
    with opened(job) as checkpoint:
        assert [each.outcome for each in checkpoint.transactions] == ["outstanding", "lost"]


def test_a_key_is_found_as_the_job_has_it_and_decoded(shared: JobWithState) -> None:
    with opened(shared) as checkpoint:
        counts = checkpoint.state("count")
        assert [counts.get("EWR"), counts.get(b"EWR"), counts.get(b"\xff\x00")] == [5, 5, {"n": [1, None]}]
        assert counts.get("JFK") is None


def test_a_key_that_several_partitions_have_is_found_in_each(shared: JobWithState) -> None:
    with opened(shared) as checkpoint:
        counts = checkpoint.state("count")
        assert [(each.partition, each.subtask, each.value) for each in counts.find("LGA")] == [
            (0, 0, 3),
            (1, 1, 2),
        ]
        assert counts.get("LGA", 1) == 2
        with pytest.raises(ConfigurationError, match="partitions 0, 1"):
            counts.get("LGA")
        with pytest.raises(ConfigurationError, match="no partition 7; it has 0, 1"):
            counts.get("LGA", 7)


def test_a_scan_yields_the_keys_that_begin_so_over_all_partitions(shared: JobWithState) -> None:
    with opened(shared) as checkpoint:
        counts = checkpoint.state("count")
        assert [(each.partition, each.key) for each in counts.scan("L")] == [(0, b"LGA"), (1, b"LGA")]
        assert [each.key for each in counts.scan(b"\xff")] == [b"\xff\x00"]
        assert [each.key for each in counts.items()] == [b"EWR", b"LGA", b"LGA", b"\xff\x00"]
        assert counts.size() == StateSize(keys=4, size_bytes=3 * 4 + 3 + len('{"n":[1,null]}'))


def test_states_do_not_mix_and_a_declared_one_without_keys_is_there(tmp_path: Path) -> None:
    job = JobWithState(tmp_path / "checkpoints", {"count": Json(), "empty": Json()})
    for name in ("a", "count", "counts"):
        job.put(LEFT, b"k", b'"%s"' % name.encode(), name)
    job.checkpoint()
    with opened(job) as checkpoint:
        assert checkpoint.states == ("a", "count", "counts", "empty")
        assert [each.value for each in checkpoint.state("count").items()] == ["count"]
        assert list(checkpoint.state("empty").items()) == []
        with pytest.raises(ConfigurationError, match="no state 'total'; it has: a, count, counts, empty"):
            checkpoint.state("total")


def test_what_an_operator_keeps_for_itself_is_an_entry_of_each_subtask(job: JobWithState) -> None:
    job.own = {0: b"of 0", 1: b"of 1"}
    job.checkpoint()
    with opened(job) as checkpoint:
        found = list(checkpoint.state("own").items())
        assert [(each.subtask, each.partition, each.raw) for each in found] == [(0, None, b"of 0"), (1, None, b"of 1")]
        assert list(checkpoint.entries())[-2:] == found


SCHEMA = {"type": "record", "name": "Total", "fields": [{"name": "n", "type": "int"}]}


def test_values_are_decoded_by_the_serde_that_the_job_declared(tmp_path: Path) -> None:
    serdes: dict[str, Serde] = {"json": Json(), "text": String(), "bytes": Bytes(), "avro": Avro(SCHEMA)}
    values = {"json": [1, "a"], "text": "text", "bytes": b"\x00", "avro": {"n": 7}}
    job = JobWithState(tmp_path / "checkpoints", serdes)
    for name, serde in serdes.items():
        job.put(LEFT, b"k", serde.serialize(values[name]) or b"", name)
    job.checkpoint()
    with opened(job) as checkpoint:
        assert {name: checkpoint.state(name).get("k") for name in serdes} == values
        assert {name: str(checkpoint.serde(name)) for name in serdes} == {name: str(serdes[name]) for name in serdes}


class Own(Json):
    """A serde of the user's."""


def test_a_serde_of_the_users_own_is_not_imported_and_its_values_are_bytes(tmp_path: Path) -> None:
    job = JobWithState(tmp_path / "checkpoints", {"count": Own()})
    job.put(LEFT, b"k", b"7")
    job.checkpoint()
    with opened(job) as checkpoint:
        assert checkpoint.serde("count") is None
        assert checkpoint.state("count").get("k") == b"7"
    with opened(job, serdes={"count": Own()}) as checkpoint:
        assert checkpoint.state("count").get("k") == 7


def test_a_value_that_its_serde_refuses_is_an_error_that_names_it_and_its_bytes_are_there(job: JobWithState) -> None:
    job.put(LEFT, b"bad", b"{")
    job.checkpoint()
    with opened(job) as checkpoint:
        (entry,) = checkpoint.state("count").find("bad")
        assert entry.raw == b"{"
        with pytest.raises(UserCodeError, match=r"state 'count' of key b'bad' in partition 0 can't be decoded by Json"):
            _ = entry.value


def test_an_older_checkpoint_is_opened_by_its_id_and_shows_what_it_held(job: JobWithState) -> None:
    job.put(LEFT, b"EWR", b"6")
    job.checkpoint()
    with opened(job, 1) as first, opened(job, "latest") as second:
        assert [each.state("count").get("EWR") for each in (first, second)] == [5, 6]


def test_looking_changes_no_file_of_the_checkpoint_folder_and_leaves_none_elsewhere(
    shared: JobWithState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(shared.root)
    (tmp_path / "private").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "private"))
    with opened(shared) as checkpoint:
        assert len(list(checkpoint.entries())) == 4
        assert [path.stat().st_mode & 0o777 for path in (tmp_path / "private").iterdir()] == [0o700]
    assert list((tmp_path / "private").iterdir()) == []
    assert tree(shared.root) == before


def test_a_copy_and_an_archive_are_opened_as_the_checkpoint_itself(shared: JobWithState, tmp_path: Path) -> None:
    located = locate("1", LocalStore(shared.root))
    copy_checkpoint(located, LocalStore(tmp_path / "copy"))
    pack(located, tmp_path / "packed.tar")
    for reference in (tmp_path / "copy", tmp_path / "packed.tar"):
        with open_checkpoint(reference) as checkpoint:
            assert checkpoint.state("count").get("EWR") == 5


def test_positions_are_shown_without_opening_any_state(shared: JobWithState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with opened(shared) as checkpoint:
        assert len(checkpoint.positions) == 2


def test_a_checkpoint_that_retention_deletes_meanwhile_is_not_called_damaged(job: JobWithState) -> None:
    job.checkpoint()
    job.checkpoint()
    with opened(job, 1) as checkpoint:
        job.forget(CheckpointId(1))
        with pytest.raises(ConfigurationError, match="checkpoint 1 of job 'flights' was deleted while it was read"):
            checkpoint.state("count")


def test_a_snapshot_that_is_said_to_be_elsewhere_is_not_looked_for_there(shared: JobWithState) -> None:
    with opened(shared) as checkpoint:
        first = replace(checkpoint.subtasks[0].state, path="chk-1/subtask-1")
        snapshots = (replace(checkpoint.subtasks[0], state=first), checkpoint.subtasks[1])
        with pytest.raises(CheckpointCorrupted, match="'chk-1/subtask-1' as the place of subtask 0"):
            OpenSnapshots(
                locate("1", LocalStore(shared.root)), replace(checkpoint.metadata, snapshots=snapshots), {}
            ).all()


def test_a_snapshot_that_stands_elsewhere_than_its_metadata_says_is_refused(shared: JobWithState) -> None:
    with opened(shared) as checkpoint:
        first, second = checkpoint.subtasks
        moved = changed(first, positions=(replace(first.positions[0], position=Position(7)),))
        with pytest.raises(CheckpointCorrupted, match="does not belong to its checkpoint"):
            OpenSnapshots(
                locate("1", LocalStore(shared.root)), replace(checkpoint.metadata, snapshots=(moved, second)), {}
            ).all()


def test_a_list_and_a_map_are_one_value_of_their_key_though_each_entry_is_stored_by_itself(tmp_path: Path) -> None:
    maps: dict[str, Serde] = {"op/map": MapOf(Json(), Timed(Json())), "op/list": ListOf(OwnSerde())}
    job = JobWithState(tmp_path / "checkpoints", maps)
    for key in (b"1", b"[1]", b"true", b"1.0"):
        job.put(LEFT, entries_prefix(b"a") + key, timed(5, b'"v"'), "op/map")
    job.put(RIGHT, entries_prefix(b"ab") + b"1", timed(5, b"2"), "op/map")
    for number in (256, 1):
        job.put(LEFT, entries_prefix(b"a\0") + number_key(number), b"%d" % number, "op/list")
    job.checkpoint()
    with opened(job) as checkpoint:
        state = checkpoint.state("op/map")
        assert state.get("a") == [(1, "v"), (1.0, "v"), ([1], "v"), (True, "v")]
        assert [type(key) for key, _ in state.get("a")] == [int, float, list, bool]
        assert (state.get("ab"), state.get("b"), state.get("")) == ([(1, 2)], None, None)
        assert [entry.key for entry in state.items()] == [b"a", b"ab"]
        assert [entry.key for entry in state.scan("a")] == [b"a", b"ab"]
        assert [(entry.key, entry.raw) for entry in checkpoint.state("op/list").items()] == [
            (b"a\0", b"\0\0\0\x011\0\0\0\x03256")
        ]


class OwnSerde(Json):
    """A serde of a user's own, of which a checkpoint has the name only."""
