"""Keys of state: every one can be read back, and no prefix catches a neighbour's."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.kafka.topic_partition import TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import name_of_file, subtask_folder
from twopc.state.layout import (
    after_prefix,
    keyed_partition,
    parse_keyed_key,
    parse_position_key,
    parse_snapshot_path,
    partition_prefix,
    position_key,
    state_prefix,
)

partitions = st.builds(
    TopicPartition, st.text(max_size=20), st.one_of(st.integers(0, 0xFFFFFFFF), st.sampled_from([0, 1, 0x6161]))
)
names = st.text(max_size=20)


@given(partitions, names, st.binary(max_size=40))
def test_a_keyed_key_gives_back_what_it_was_made_of(partition: TopicPartition, name: str, key: bytes) -> None:
    assert parse_keyed_key(state_prefix(partition, name) + key) == (partition, name, key)


@given(names)
def test_a_position_key_gives_back_its_split(split: str) -> None:
    assert parse_position_key(position_key(split)) == split


def test_the_keyed_state_of_a_split_is_kept_where_its_rows_say_that_they_are_from() -> None:
    assert keyed_partition(SplitPosition("in[1]", 1, [7, "id"])) == TopicPartition("in", 1)
    assert keyed_partition(SplitPosition("bucket-3", 3, 7)) == TopicPartition("bucket-3", 3)


@given(partitions, partitions)
@example(TopicPartition("a", 1), TopicPartition("a", 10))
@example(TopicPartition("a", 0x61), TopicPartition("aa", 0x61))
@example(TopicPartition("", 0), TopicPartition("", 1))
def test_no_partition_is_the_prefix_of_another(one: TopicPartition, other: TopicPartition) -> None:
    assume(one != other)
    assert not partition_prefix(one).startswith(partition_prefix(other))


@given(partitions, names, partitions, names, st.binary(max_size=40))
@example(TopicPartition("a", 0), "count", TopicPartition("a", 0), "counter", b"")
def test_no_key_of_one_state_is_found_under_another(
    one: TopicPartition, name: str, other: TopicPartition, other_name: str, key: bytes
) -> None:
    assume((one, name) != (other, other_name))
    assert not (state_prefix(one, name) + key).startswith(state_prefix(other, other_name))


@given(partitions, names)
def test_a_state_is_found_under_its_partition(partition: TopicPartition, name: str) -> None:
    assert state_prefix(partition, name).startswith(partition_prefix(partition))


@given(st.binary(max_size=12))
def test_a_foreign_key_is_read_as_what_it_spells_or_refused(key: bytes) -> None:
    try:
        partition, name, user_key = parse_keyed_key(key)
    except CheckpointCorrupted:
        return
    assert state_prefix(partition, name) + user_key == key


def test_a_foreign_position_key_is_refused() -> None:
    with pytest.raises(CheckpointCorrupted):
        parse_position_key(b"in[\xff]")


def test_a_state_name_that_does_not_fit_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="65535"):
        state_prefix(TopicPartition("t", 0), "n" * 65_536)


@given(st.integers(1, 2**62), st.integers(0, 2**31))
def test_the_path_of_a_snapshot_gives_back_its_numbers(checkpoint: int, subtask: int) -> None:
    path = subtask_folder(CheckpointId(checkpoint), SubtaskIndex(subtask))
    assert parse_snapshot_path(path) == (checkpoint, subtask)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            ".",
            "..",
            "/",
            "/etc",
            "/chk-1/subtask-0",
            "../chk-1/subtask-0",
            "chk-1/../subtask-0",
            "chk-1/subtask-0/..",
        ),
        *("chk-1", "chk-1/", "chk-1/subtask-0/", "chk-1//subtask-0", "chk-1\\subtask-0", "chk-1/subtask-0\n"),
        *("chk-01/subtask-0", "chk--1/subtask-0", "chk-\u0661/subtask-0", "chk-1/subtask-0\x00"),
    ],
)
def test_any_other_path_is_refused(path: str) -> None:
    with pytest.raises(CheckpointCorrupted):
        parse_snapshot_path(path)


@pytest.mark.parametrize("name", ["000012.sst", "CURRENT", "MANIFEST-000005", "rocksdict-config.json", "state.json"])
def test_names_that_rocksdb_uses_may_be_paths(name: str) -> None:
    assert name_of_file(f"files/7-0-3f-{name}") == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "/a", "../a", "a\\b", "a\n", "a\x00", "a b", "ä", "-rf", "x" * 256]
)
def test_other_names_may_not(name: str) -> None:
    assert name_of_file(f"files/7-0-3f-{name}") == ""


crowded = st.lists(st.sampled_from([0x61, 0x62, 0xFF]), max_size=4).map(bytes)


@given(crowded, crowded)
def test_between_a_prefix_and_what_follows_it_is_all_that_starts_with_it_and_nothing_else(
    prefix: bytes, key: bytes
) -> None:
    end = after_prefix(prefix)
    assert (prefix <= key and (end is None or key < end)) == key.startswith(prefix)


def test_nothing_follows_the_greatest_prefixes() -> None:
    assert [after_prefix(prefix) for prefix in (b"", b"\xff", b"a\xff")] == [None, None, b"b"]
