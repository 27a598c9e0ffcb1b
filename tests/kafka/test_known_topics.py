"""Output topics that are others than at the checkpoint: said at the start, with what follows from it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.kafka.kit import DrivenSink, grow_topic
from tests.kafka.test_committable import PREPARED
from twopc.errors import CheckpointCorrupted
from twopc.kafka.committable import PreparedTransaction
from twopc.kafka.control_client import TopicInfo
from twopc.kafka.known_topics import KnownTopic, changed_topics, newest_known
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId
from twopc.testing.topics import create_topic, delete_topic

KNOWN = {"out": KnownTopic(CheckpointId(7), "an-id", 2), "other": KnownTopic(CheckpointId(7), "b", 1)}


def test_what_a_writer_knew_survives_being_stored_and_the_latest_checkpoint_counts() -> None:
    before = replace(PREPARED, checkpoint_id=CheckpointId(6), known_topics={"out": ("an-id", 1), "gone": ("c", 3)})
    later = replace(PREPARED, known_topics={"out": ("an-id", 2)})
    stored = [json.dumps(to_json(each.to_committable())) for each in (later, before)]
    read = [PreparedTransaction.from_committable(from_json(Committable, json.loads(each))) for each in stored]
    assert read == [later, before]
    assert newest_known(read) == {
        "out": KnownTopic(CheckpointId(7), "an-id", 2),
        "gone": KnownTopic(CheckpointId(6), "c", 3),
    }
    assert newest_known([PREPARED]) == {}, "an earlier version wrote none"


@pytest.mark.parametrize("known", [7, ["out"], {"out": 7}, {"out": ["id"]}, {"out": ["id", "x"]}])
def test_what_no_writer_of_ours_knew_is_damage(known: object) -> None:
    whole = PREPARED.to_committable()
    with pytest.raises(CheckpointCorrupted, match="committable job-0-1@7"):
        PreparedTransaction.from_committable(replace(whole, payload={**whole.payload, "known_topics": known}))


def test_topics_that_are_the_same_or_gone_are_not_spoken_of() -> None:
    assert changed_topics(KNOWN, {"out": TopicInfo("an-id", 2), "new": TopicInfo("d", 4)}) == []


def test_another_id_and_another_number_of_partitions_are_named_with_what_follows() -> None:
    [recreated, grown] = changed_topics(KNOWN, {"out": TopicInfo("z", 2), "other": TopicInfo("b", 3)})
    assert "'out' was deleted and created again since checkpoint 7: its id was an-id, and is z now" in recreated
    assert "--from none" in recreated
    assert "'other' has 3 partitions, and had 1 at checkpoint 7" in grown
    assert "Readers that keep state or order by key" in grown


@pytest.mark.broker
@pytest.mark.parametrize("is_recreated", [True, False])
def test_the_next_attempt_says_what_became_of_the_topic_that_it_writes_to(
    driven: DrivenSink, servers: str, out: str, is_recreated: bool, caplog: pytest.LogCaptureFixture
) -> None:
    driven.write(b"a record")
    committable = driven.pre_commit(1)
    driven.complete(committable)
    driven.die()
    if is_recreated:
        delete_topic(servers, out)
        create_topic(servers, out)
    else:
        grow_topic(servers, out, 3)
    driven.attempt += 1
    driven._committer = None
    driven.committer.settle([committable], frozenset([committable.name]))
    driven.committer.abort_lingering()
    said = "was deleted and created again" if is_recreated else "has 3 partitions, and had 1 at checkpoint 1"
    assert [said in record.getMessage() for record in caplog.records if out in record.getMessage()] == [True]
    driven.start_attempt()
