"""What is left out where a job has deleted records of a topic of its own, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from twopc import Job, Json, KafkaSink, KafkaSource
from twopc.errors import NotJudged
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify import own_topics
from twopc.verify.own_topics import with_whole_topics
from twopc.verify.plan import VerifyPlan, plan_of

FIRST, SECOND = "job-first-repartition", "job-second-repartition"


def plan(*outputs: str) -> VerifyPlan:
    """Of a job with two key_bys, one behind the other, and something that goes through neither."""
    job = Job("job")
    source = job.source(KafkaSource("in", value=Json()))
    source.sink(KafkaSink("copies", value=Json()))
    first = source.key_by(lambda value: value, name="first")
    first.sink(KafkaSink("middle", value=Json()))
    first.key_by(lambda value: value, name="second").sink(KafkaSink("last", value=Json()))
    return plan_of(job.definition(), (), outputs, "there:1")


@pytest.fixture
def begins(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """At which offset each topic begins; the first where it is not said."""
    firsts: dict[str, int] = {}

    def ranges(_: Any, topics: Mapping[str, Any]) -> dict[TopicPartition, tuple[int, int]]:
        return {TopicPartition(topic, 0): (firsts.get(topic, 0), 9) for topic in topics}

    client = SimpleNamespace(topics=lambda names: dict.fromkeys(names))
    monkeypatch.setattr(Cluster, "client", lambda _: nullcontext(client))
    monkeypatch.setattr(own_topics, "ranges_of", ranges)
    return firsts


def test_a_topic_that_is_whole_is_judged_and_read(begins: dict[str, int]) -> None:
    whole = with_whole_topics(plan())
    assert set(whole.outputs) == {"copies", FIRST, "middle", SECOND, "last"}
    assert (list(whole.sources), whole.left_out) == (["source-1", "first-source", "second-source"], ())


def test_what_comes_of_one_that_is_not_is_left_out_by_name_up_to_the_last_key_by(begins: dict[str, int]) -> None:
    begins[FIRST] = 4
    left = with_whole_topics(plan())
    assert (set(left.outputs), list(left.sources)) == ({"copies"}, ["source-1"])
    assert f"{FIRST}[0] up to offset 4" in left.left_out[0]
    assert [said.split("'")[1] for said in left.left_out[1:]] == [SECOND, "last", "middle"]


def test_with_a_topic_are_judged_those_of_the_jobs_own_that_it_is_made_of() -> None:
    assert set(plan("last").outputs) == {"last", SECOND, FIRST}
    assert set(plan("middle").outputs) == {"middle", FIRST}
    assert set(plan("copies").outputs) == {"copies"}


def test_what_comes_before_it_is_judged(begins: dict[str, int]) -> None:
    begins[SECOND] = 1
    left = with_whole_topics(plan())
    assert (set(left.outputs), list(left.sources)) == ({"copies", FIRST, "middle"}, ["source-1", "first-source"])


def test_where_nothing_is_left_nothing_is_judged(begins: dict[str, int]) -> None:
    begins[FIRST] = 4
    job = Job("job").source(KafkaSource("in", value=Json())).key_by(lambda value: value, name="first")
    only = plan_of(job.sink(KafkaSink("out", value=Json())).definition(), (), (), "there:1")
    with pytest.raises(NotJudged, match=r"can't be verified: topic 'job-first-repartition' of the job's own"):
        with_whole_topics(only)
