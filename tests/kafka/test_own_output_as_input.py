"""A job that reads what it writes is refused: by names as it is built, by topics' ids when its input is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import pytest

from tests.kafka.test_planning import CONTEXT
from twopc import ConfigurationError, DeadLetter, Job, Json, KafkaSink, KafkaSource
from twopc.connect import JobDefinition
from twopc.kafka.clients.control_client import TopicInfo
from twopc.source import Split


def built(source: KafkaSource, *sinks: KafkaSink, dead: str | None = None) -> JobDefinition:
    job = Job("loop")
    stream = job.source(source) if dead is None else job.source(source, on_error=DeadLetter(dead))
    for sink in sinks:
        stream.sink(sink)
    return job.definition()


OUT = KafkaSink("out")


@pytest.mark.parametrize(
    ("source", "sinks", "dead"),
    [
        (KafkaSource(["in", "back"]), [OUT, KafkaSink("back")], None),
        (KafkaSource(pattern="b.*"), [KafkaSink("back")], None),
        (KafkaSource("back"), [OUT], "back"),
        (KafkaSource(pattern="b.*", exclude="bad"), [OUT], "back"),
        (KafkaSource("back", bootstrap_servers="a:1,b:1"), [KafkaSink("back", bootstrap_servers="c:1, b:1")], None),
        (KafkaSource("back"), [KafkaSink("back", delivery_guarantee="none")], None),
    ],
)
def test_a_topic_that_is_written_and_read_is_refused_as_the_job_is_built(
    source: KafkaSource, sinks: list[KafkaSink], dead: str | None
) -> None:
    with pytest.raises(ConfigurationError, match=r"job 'loop' writes 'back' and 'source-1' reads it.*exclude="):
        built(source, *sinks, dead=dead)


def test_a_broadcast_table_of_what_the_job_writes_is_refused() -> None:
    job = Job("loop")
    table = job.source(KafkaSource("back", value=Json()), name="slow").table("t", broadcast=True)
    job.source(KafkaSource("in", value=Json())).join(table, lambda one, _: one).sink(KafkaSink("back", value=Json()))
    with pytest.raises(ConfigurationError, match="job 'loop' writes 'back' and 'slow' reads it"):
        job.definition()


@pytest.mark.parametrize(
    "source",
    [
        KafkaSource(pattern="b.*", exclude="back.*"),
        KafkaSource("in"),
        KafkaSource("back", bootstrap_servers="elsewhere:1"),
    ],
)
def test_a_topic_that_is_left_out_or_may_be_another_clusters_is_not(source: KafkaSource) -> None:
    assert list(built(source, KafkaSink("back"), dead="back-dead").sinks) == ["sink-1", "dead-letters-back-dead"]


class Cluster:
    """Knows the ids of topics."""

    def __init__(self, topics: dict[str, TopicInfo]) -> None:
        self._topics = topics

    def __call__(self, *_: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        return {name: self._topics[name] for name in names if name in self._topics}


SPLITS = [Split("in[0]", 0, [4, "id-in"], None, source="a"), Split("back[1]", 1, [0, "id-1"], None, source="b")]


def test_a_topic_of_one_id_is_refused_when_the_input_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.kafka.sink.LeaderClient", Cluster({"back": TopicInfo("id-1", 2)}))
    with pytest.raises(ConfigurationError, match="job 'orders' writes 'back' and 'b' reads it"):
        KafkaSink("back").refuse_inputs(CONTEXT, SPLITS)


@pytest.mark.parametrize("there", [{"back": TopicInfo("id-2", 2)}, {}])
def test_a_topic_of_the_same_name_and_another_id_is_another(
    monkeypatch: pytest.MonkeyPatch, there: dict[str, TopicInfo]
) -> None:
    monkeypatch.setattr("twopc.kafka.sink.LeaderClient", Cluster(there))
    KafkaSink("back").refuse_inputs(CONTEXT, SPLITS)


def test_nobody_is_asked_about_topics_of_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.kafka.sink.LeaderClient", None)
    KafkaSink("out").refuse_inputs(CONTEXT, SPLITS)
