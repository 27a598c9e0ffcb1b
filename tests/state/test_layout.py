"""Keys of state: every one can be read back, and no prefix catches a neighbour's."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import name_of_file, subtask_folder
from twopc.state.layout import (
    StateName,
    after_prefix,
    operator_prefix,
    parse_keyed_key,
    parse_position_key,
    parse_snapshot_path,
    partition_prefix,
    position_key,
    state_prefix,
)

operators = st.text(max_size=20)
numbers = st.one_of(st.integers(0, 0xFFFFFFFF), st.sampled_from([0, 1, 0x6161]))
states = st.builds(StateName, operators, st.text(max_size=20))


@given(states, numbers, st.binary(max_size=40))
def test_a_keyed_key_gives_back_what_it_was_made_of(state: StateName, number: int, key: bytes) -> None:
    assert parse_keyed_key(state_prefix(state, number) + key) == (state, number, key)


@given(st.text(max_size=20))
def test_a_position_key_gives_back_its_split(split: str) -> None:
    assert parse_position_key(position_key(split)) == split


@given(operators, numbers, operators, numbers)
@example("a", 1, "a", 10)
@example("a", 0x61, "aa", 0x61)
@example("", 0, "", 1)
def test_no_partition_of_an_operator_is_the_prefix_of_another(one: str, number: int, other: str, another: int) -> None:
    assume((one, number) != (other, another))
    assert not partition_prefix(one, number).startswith(partition_prefix(other, another))


@given(states, numbers, states, numbers, st.binary(max_size=40))
@example(StateName("a", "count"), 0, StateName("a", "counter"), 0, b"")
@example(StateName("a", "b"), 0, StateName("b", "a"), 0, b"")
def test_no_key_of_one_state_is_found_under_another(
    one: StateName, number: int, other: StateName, another: int, key: bytes
) -> None:
    assume((one, number) != (other, another))
    assert not (state_prefix(one, number) + key).startswith(state_prefix(other, another))


@given(states, numbers)
def test_a_state_is_found_under_its_operator_and_partition(state: StateName, number: int) -> None:
    assert partition_prefix(state.operator, number).startswith(operator_prefix(state.operator))
    assert state_prefix(state, number).startswith(partition_prefix(state.operator, number))


@pytest.mark.parametrize(("state", "text"), [(StateName("n", "n"), "n"), (StateName("n", "seen"), "n/seen")])
def test_a_state_is_named_by_its_operator_where_that_has_one_of_the_same_name(state: StateName, text: str) -> None:
    assert str(state) == text
    assert StateName.parse(text) == state


@given(st.binary(max_size=12))
def test_a_foreign_key_is_read_as_what_it_spells_or_refused(key: bytes) -> None:
    try:
        state, number, user_key = parse_keyed_key(key)
    except CheckpointCorrupted:
        return
    assert state_prefix(state, number) + user_key == key


def test_a_foreign_position_key_is_refused() -> None:
    with pytest.raises(CheckpointCorrupted):
        parse_position_key(b"in[\xff]")


def test_a_state_name_that_does_not_fit_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="65535"):
        state_prefix(StateName("o", "n" * 65_536), 0)


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
