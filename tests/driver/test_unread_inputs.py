"""Input of a checkpoint that the job no longer reads."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from twopc.driver.restore_checks import refuse_dropped_but_read, refuse_unread_inputs
from twopc.errors import ConfigurationError
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit, input_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex


def stands_in(*partitions: TopicPartition) -> CheckpointMetadata:
    positions = tuple(PartitionPosition(each, "id", Position(5)).to_split_position() for each in partitions)
    snapshot = SubtaskSnapshot.of(SubtaskIndex(0), positions, StateHandle.inline("chk-7/subtask-0", {}, 0, 0), ())
    return CheckpointMetadata("j", CheckpointId(7), AttemptId(2), 1, CheckpointKind.PERIODIC, 0, 0, (snapshot,))


A, B, B1 = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("b", 1)


def judge(restored: CheckpointMetadata | None, read: Collection[TopicPartition], dropped: Collection[str] = ()) -> None:
    splits = set(map(str, read))
    refuse_unread_inputs(restored, splits.__contains__, input_of, (each.topic for each in read), dropped)


def test_a_topic_that_is_no_longer_read_is_refused_by_name_with_the_flag_that_drops_it() -> None:
    with pytest.raises(ConfigurationError, match=r"checkpoint 7.*input 'b'.*it reads: a\).*--drop-inputs b"):
        judge(stands_in(A, B, B1), [A])


def test_a_partition_that_is_no_longer_read_is_refused_too() -> None:
    with pytest.raises(ConfigurationError, match=r"input 'b'.*it reads: a, b\)"):
        judge(stands_in(A, B, B1), [A, B])


def test_what_is_read_and_what_is_dropped_is_let_through() -> None:
    judge(stands_in(A, B), [A, B, B1])
    judge(stands_in(A, B, B1), [A], {"b", "never there"})
    judge(None, [A])


def test_a_topic_that_is_read_on_can_not_be_dropped_and_one_that_is_read_anew_can() -> None:
    restored, again = stands_in(A), PartitionSplit(A, "id", Position(5), None).to_split()
    with pytest.raises(ConfigurationError, match="drop_inputs names input 'a', which the job reads"):
        refuse_dropped_but_read(restored, [again], input_of, {"a"})
    refuse_dropped_but_read(restored, [again], input_of, {"b"})
    refuse_dropped_but_read(restored, [PartitionSplit(A, "new", Position(0), None).to_split()], input_of, {"a"})
    refuse_dropped_but_read(None, [again], input_of, {"a"})
