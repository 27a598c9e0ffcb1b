"""Output topics that are others than at the checkpoint: said at the start, with what follows from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.kafka.kit import DrivenSink, grow_topic
from twopc import DeliveryGuarantee
from twopc.kafka.clients.control_client import TopicInfo
from twopc.kafka.topics.known_topics import KnownTopic, changed_topics, known_outputs, known_topics
from twopc.protocol.facts import KnownOutput
from twopc.protocol.ids import CheckpointId
from twopc.sink import PreCommit
from twopc.testing.topics import create_topic, delete_topic

KNOWN = {"out": KnownTopic("an-id", 2), "other": KnownTopic("b", 1)}


def test_what_a_writer_knew_survives_being_stored_and_what_it_has_not_met_yet_stays_as_it_was() -> None:
    earlier = known_outputs({"out": KnownTopic("old", 1), "unmet": KnownTopic("c", 3)}, ())
    stored = json.loads(json.dumps([[each.name, each.facts] for each in known_outputs(KNOWN, earlier)]))
    read = known_topics(KnownOutput(name, facts) for name, facts in stored)
    assert read == KNOWN | {"unmet": KnownTopic("c", 3)}


@pytest.mark.parametrize("facts", [7, ["id", 1], {"topic_id": "id"}, {"topic_id": 7, "partitions": 1}])
def test_what_a_sink_of_another_kind_had_under_this_name_is_passed_over(facts: object) -> None:
    assert known_topics([KnownOutput("out", facts)]) == {}


def test_topics_that_are_the_same_or_gone_are_not_spoken_of() -> None:
    assert changed_topics(KNOWN, {"out": TopicInfo("an-id", 2), "new": TopicInfo("d", 4)}) == []


def test_another_id_and_another_number_of_partitions_are_named_with_what_follows() -> None:
    [recreated, grown] = changed_topics(KNOWN, {"out": TopicInfo("z", 2), "other": TopicInfo("b", 3)})
    assert "'out' was deleted and created again since this job wrote to it last: its id was an-id" in recreated
    assert "--from none" in recreated
    assert "'other' has 3 partitions, and had 1 when this job wrote to it last" in grown
    assert "Readers that keep state or order by key" in grown


def _written(driven: DrivenSink) -> None:
    driven.write(b"a record")
    driven.complete(driven.pre_commit(1))


def _nothing(driven: DrivenSink) -> None:
    assert driven.writer.pre_commit(PreCommit(CheckpointId(1), (), None)) is None


@pytest.mark.broker
@pytest.mark.parametrize("is_recreated", [True, False])
@pytest.mark.parametrize(
    ("before", "guarantee"),
    [
        pytest.param(_written, DeliveryGuarantee.EXACTLY_ONCE, id="a record"),
        pytest.param(_nothing, DeliveryGuarantee.EXACTLY_ONCE, id="nothing written"),
        pytest.param(_nothing, DeliveryGuarantee.AT_LEAST_ONCE, id="no transactions"),
    ],
)
def test_the_next_attempt_says_what_became_of_the_topic_that_it_writes_to(
    servers: str,
    job: str,
    out: str,
    before: Callable[[DrivenSink], None],
    guarantee: DeliveryGuarantee,
    is_recreated: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    driven = DrivenSink(servers, job, out, out, delivery_guarantee=guarantee)
    driven.start_attempt()
    before(driven)
    known: list[Any] = driven.writer.known_outputs(())
    driven.die()
    if is_recreated:
        delete_topic(servers, out)
        create_topic(servers, out)
    else:
        grow_topic(servers, out, 3)
    driven.start_attempt()
    driven.committer.compare(known)
    driven.die()
    said = "was deleted and created again" if is_recreated else "has 3 partitions, and had 1 when"
    assert [said in record.getMessage() for record in caplog.records if out in record.getMessage()] == [True]


@pytest.mark.broker
def test_a_topic_that_gets_more_partitions_while_the_job_runs_is_told_of_once(
    driven: DrivenSink, servers: str, out: str, caplog: pytest.LogCaptureFixture
) -> None:
    for partitions in (0, 3, 0, 4):
        if partitions:
            grow_topic(servers, out, partitions)
        driven.committer.abort_lingering()
    told = [record.getMessage() for record in caplog.records if out in record.getMessage()]
    assert [f"has {count} partitions" in each for count, each in zip((3, 4), told, strict=True)] == [True, True]
    assert all("come to another one from the job's next attempt on" in each for each in told)


@pytest.mark.broker
def test_only_a_sink_whose_function_chooses_topics_keeps_what_it_has_not_met_again(
    servers: str, job: str, out: str
) -> None:
    earlier = [KnownOutput("unmet", {"topic_id": "c", "partitions": 3})]
    for topic, kept in ((out, [out]), (lambda record: out, ["unmet"])):
        driven = DrivenSink(servers, job, topic, out)
        driven.start_attempt()
        assert [each.name for each in driven.writer.known_outputs(earlier)] == kept
        driven.die()
