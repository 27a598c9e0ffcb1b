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
    assert "'count' works by key on the records of" in paths.undetermined["out"]
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


def test_a_join_of_two_topics_is_on_no_path_and_the_topics_are_named() -> None:
    job = Job("job")
    customers = job.source(KafkaSource("b"), name="customers").table("known")
    orders = job.source(KafkaSource("a"), name="orders")
    orders.join(customers, count, name="join").sink(KafkaSink("out"), name="out")
    orders.sink(KafkaSink("copies"), name="copies")
    paths = Paths.of(job.definition()).to({"copies", "out"})
    assert (
        "'join' works by key on the records of a, b, which meet in an order that no topic has"
        in (paths.undetermined["out"])
    )
    assert [node.id for node in paths.nodes] == ["orders", "copies"]


def test_a_key_by_ends_paths_and_begins_others() -> None:
    job = Job("job")
    source = job.source(KafkaSource("in"))
    source.key_by(len, name="by-length").stateful_map(count, name="count").sink(KafkaSink("counts"), name="counts")
    source.sink(KafkaSink("copy"), name="copy")
    paths = Paths.of(job.definition())
    assert not paths.undetermined
    assert list(paths.sources) == ["source-1", "by-length-source"]
    assert {node.operator for node in paths.sinks.values()} == {"by-length-sink", "counts", "copy"}
    assert paths.behind({"by-length-source"}) == {"counts"}
    assert paths.behind({"source-1"}) == {"by-length-sink", "copy"}


def test_what_works_by_key_behind_a_key_by_of_several_topics_is_on_a_path() -> None:
    job = Job("job")
    both = job.source(KafkaSource("a"), name="one").merge(job.source(KafkaSource("b"), name="other"))
    both.key_by(len, name="by-length").stateful_map(count, name="count").sink(KafkaSink("out"), name="out")
    paths = Paths.of(job.definition())
    assert not paths.undetermined
    assert [node.operator for node in paths.sinks.values()] == ["by-length-sink", "by-length-sink", "out"]


def test_what_a_join_with_a_broadcast_table_makes_is_on_no_path_and_all_else_is() -> None:
    job = Job("job")
    products = job.source(KafkaSource("b"), name="products").map(bytes.upper).table("known", broadcast=True)
    orders = job.source(KafkaSource("a"), name="orders")
    orders.join(products, count, name="join").sink(KafkaSink("out"), name="out")
    orders.stateful_map(count, name="count").sink(KafkaSink("counts"), name="counts")
    paths = Paths.of(job.definition()).to({"counts", "out"})
    assert "'join' looks into 'known', a broadcast table" in paths.undetermined["out"]
    assert {*paths.undetermined} == {"join", "out"}
    assert [node.id for node in paths.nodes] == ["orders", "count", "counts"]
