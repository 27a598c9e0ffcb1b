"""The ways of records through a graph: each by itself, and none through what depends on how topics interleave."""

from __future__ import annotations

from typing import Any

from two_sources import job as two_sources

from twopc import Job, KafkaSink, KafkaSource
from twopc.verify.paths import Paths


def count(total: Any, value: Any) -> tuple[Any, Any]:
    return (total or 0) + 1, value


def test_what_follows_a_merge_is_there_once_for_each_stream_of_it() -> None:
    paths = Paths.of(two_sources.definition())
    assert [node.operator for node in paths.sinks.values()] == ["all", "all", "large", "large"]
    assert not paths.undetermined
    assert {len(node.inputs) for node in paths.nodes} == {0, 1}


def test_only_the_paths_to_what_is_judged_are_kept() -> None:
    job = Job("job")
    one, other = job.source(KafkaSource("a"), name="one"), job.source(KafkaSource("b"), name="other")
    one.sink(KafkaSink("x"), name="x")
    other.map(bytes.upper).sink(KafkaSink("y"), name="y")
    paths = Paths.of(job.definition()).to({"x"})
    assert ([node.id for node in paths.nodes], list(paths.sources)) == (["one", "x"], ["one"])


def test_a_state_over_branches_that_meet_again_is_on_no_path_and_neither_is_what_follows() -> None:
    job = Job("job")
    orders = job.source(KafkaSource("orders"), name="orders")
    both = orders.filter(bytes.isdigit).merge(orders.filter(bytes.isalpha))
    both.stateful_map(count, name="count").sink(KafkaSink("counted"), name="counted")
    both.sink(KafkaSink("both"), name="both")
    paths = Paths.of(job.definition())
    assert {*paths.undetermined} == {"count", "counted"}
    assert {node.operator for node in paths.sinks.values()} == {"both"}


def test_a_state_over_several_topics_is_on_no_path_and_the_topics_are_named() -> None:
    job = Job("job")
    both = job.source(KafkaSource("a"), name="one").merge(job.source(KafkaSource("b"), name="other"))
    both.stateful_map(count, name="count").sink(KafkaSink("out"), name="out")
    paths = Paths.of(job.definition())
    assert "'count' keeps state over the records of" in paths.undetermined["out"]
    assert "a, b" in paths.undetermined["out"] or "b, a" in paths.undetermined["out"]
    assert not paths.sinks


def test_a_state_over_the_topics_of_one_source_is_on_no_path_either() -> None:
    job = Job("job").source(KafkaSource(["a", "b"])).stateful_map(count, name="count").sink(KafkaSink("out"))
    assert {*Paths.of(job.definition()).undetermined} == {"count", "sink-1"}


def test_a_state_before_a_merge_is_on_its_path() -> None:
    job = Job("job")
    counted = job.source(KafkaSource("a"), name="a").stateful_map(count, name="count")
    counted.merge(job.source(KafkaSource("b"), name="b")).sink(KafkaSink("out"), name="out")
    paths = Paths.of(job.definition())
    assert not paths.undetermined
    assert [node.id for node in paths.sinks.values()] == ["out/count", "out/b"]
