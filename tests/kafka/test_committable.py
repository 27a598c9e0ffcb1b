from __future__ import annotations

import json
from dataclasses import replace

import pytest

from twopc.errors import CheckpointCorrupted, NewerFormat
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.facts import Committable, SplitPosition
from twopc.protocol.ids import CheckpointId, SubtaskIndex

PREPARED = PreparedTransaction(
    transactional_id="job-0-1",
    checkpoint_id=CheckpointId(7),
    subtask=SubtaskIndex(0),
    producer_id=12,
    producer_epoch=3,
    start_ms=1_700_000_000_000,
    timeout_ms=60_000,
    partitions=(TopicPartition("out", 0), TopicPartition("out", 1)),
    topic_ids={"out": "an-id"},
    group="job",
    positions=(PartitionPosition(TopicPartition("in", 0), "in-id", Position(5)),),
)


def test_it_survives_being_stored_as_json() -> None:
    stored = json.dumps(to_json(PREPARED.to_committable()))
    assert PreparedTransaction.from_committable(from_json(Committable, json.loads(stored))) == PREPARED


def test_its_name_says_which_transaction_of_which_checkpoint() -> None:
    assert PREPARED.to_committable().name == "job-0-1@7"


@pytest.mark.parametrize("field", sorted(PREPARED.to_committable().payload))
def test_a_payload_that_lacks_a_field_is_refused_by_name(field: str) -> None:
    whole = PREPARED.to_committable()
    damaged = replace(whole, payload={name: value for name, value in whole.payload.items() if name != field})
    with pytest.raises(CheckpointCorrupted, match="committable job-0-1@7"):
        PreparedTransaction.from_committable(damaged)


def test_what_this_version_does_not_know_in_a_payload_or_a_position_is_of_a_newer_one() -> None:
    whole = PREPARED.to_committable()
    with pytest.raises(NewerFormat, match=r"committable job-0-1@7 was stored by a newer twopc.*has shape, which"):
        PreparedTransaction.from_committable(replace(whole, payload={**whole.payload, "shape": "round"}))
    held = SplitPosition("in[0]", 0, [5, "in-id", {"gone": True, "moved": "elsewhere"}])
    with pytest.raises(NewerFormat, match=r"split 'in\[0\]' was stored by a newer twopc.*has moved, which is unknown"):
        PartitionPosition.from_split_position(held)


def test_a_payload_for_another_version_of_end_txn_is_refused() -> None:
    whole = PREPARED.to_committable()
    with pytest.raises(CheckpointCorrupted, match="EndTxn version 5"):
        PreparedTransaction.from_committable(replace(whole, payload={**whole.payload, "end_txn_version": 5}))
