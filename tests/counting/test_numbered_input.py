"""The numbered input: its arithmetic agrees with the records that it makes."""

from __future__ import annotations

import pytest

from tests.counting.numbered_input import NumberedInput


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("records", [0, 1, 13, 100])
def test_places_positions_and_counts_are_those_of_the_records(partitions: int, records: int) -> None:
    source = NumberedInput(tuple(b"k%d" % number for number in range(7)), partitions, records)
    offsets = [0] * partitions
    places = [0] * 7
    for number, write in enumerate(source.writes()):
        lane = source.lane_of(write.key)
        assert lane is not None
        assert write.partition == source.partition_of(lane)
        assert write.value == b"%d" % number
        assert source.number(lane, places[lane]) == number
        assert source.position(lane, places[lane]) == offsets[write.partition]
        assert source.before(lane, offsets[write.partition]) == places[lane]
        offsets[write.partition] += 1
        places[lane] += 1
        assert source.before(lane, offsets[write.partition]) == places[lane]
    assert [source.size(lane) for lane in source.lanes] == places
    assert [source.end(partition) for partition in range(partitions)] == offsets


def test_a_part_of_the_records_is_made_as_in_the_whole() -> None:
    source = NumberedInput((b"a", b"b"), 2, 10)
    assert [*source.writes(0, 4), *source.writes(4)] == list(source.writes())


def test_a_key_that_the_input_does_not_have_has_no_lane() -> None:
    source = NumberedInput((b"a",), 1, 1)
    assert source.lane_of(b"b") is None
    assert source.lane_of(None) is None
