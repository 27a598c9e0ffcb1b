"""The ways of records through a graph: each by itself, but where they meet by key."""

from __future__ import annotations

from typing import Any

from two_sources import job as two_sources

from twopc import Job, KafkaSink, KafkaSource, String, Tumbling
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


def test_a_state_over_branches_that_meet_again_is_there_once_behind_a_merge_of_them() -> None:
    job = Job("job")
    orders = job.source(KafkaSource("orders"), name="orders")
    both = orders.filter(bytes.isdigit).merge(orders.filter(bytes.isalpha))
    both.stateful_map(count, name="count").sink(KafkaSink("counted"), name="counted")
    both.sink(KafkaSink("both"), name="both")
    paths = Paths.of(job.definition())
    assert (paths.undetermined, paths.by_time, paths.meetings) == ({}, {}, ())
    assert {node.id: node.inputs for node in paths.nodes if node.operator in ("count", "counted")} == {
        "count/0": ("filter-1", "filter-2"),
        "count": ("count/0",),
        "counted": ("count",),
    }
    assert [node.id for node in paths.sinks.values() if node.operator == "both"] == ["both/filter-1", "both/filter-2"]


def test_a_state_over_several_topics_is_there_once_and_depends_on_the_order_of_their_times() -> None:
    job = Job("job")
    both = job.source(KafkaSource("a"), name="one").merge(job.source(KafkaSource("b"), name="other"))
    both.stateful_map(count, name="count").sink(KafkaSink("out"), name="out")
    both.sink(KafkaSink("both"), name="both")
    paths = Paths.of(job.definition())
    assert not paths.undetermined
    assert {*paths.by_time} == {"count", "out"}
    assert paths.by_time["out"] == "a, b"
    assert [sorted(met) for met in paths.meetings] == [["one", "other"]]
    assert [node.id for node in paths.sinks.values() if node.operator == "out"] == ["out"]


def test_a_state_over_the_topics_of_one_source_is_on_no_path_where_nothing_orders_them_by_time() -> None:
    job = Job("job").source(KafkaSource(["a", "b"])).stateful_map(count, name="count").sink(KafkaSink("out"))
    paths = Paths.of(job.definition())
    assert {*paths.undetermined} == {"count", "sink-1"}
    assert "'count' works by key on the records of a, b" in paths.undetermined["sink-1"]


def test_what_meets_a_topic_of_the_jobs_own_is_on_no_path() -> None:
    job = Job("job")
    rekeyed = job.source(KafkaSource("a"), name="one").key_by(len, name="by-length")
    met = rekeyed.merge(job.source(KafkaSource("b"), name="other"))
    met.stateful_map(count, name="count").sink(KafkaSink("out"), name="out")
    paths = Paths.of(job.definition())
    assert {*paths.undetermined} == {"count", "out"}
    assert "which meet in an order that no topic has" in paths.undetermined["out"]


def test_a_state_before_a_merge_is_on_its_path() -> None:
    job = Job("job")
    counted = job.source(KafkaSource("a"), name="a").stateful_map(count, name="count")
    counted.merge(job.source(KafkaSource("b"), name="b")).sink(KafkaSink("out"), name="out")
    paths = Paths.of(job.definition())
    assert not paths.undetermined
    assert [node.id for node in paths.sinks.values()] == ["out/count", "out/b"]


def test_a_join_has_its_table_and_both_depend_on_the_order_of_times() -> None:
    job = Job("job")
    customers = job.source(KafkaSource("b"), name="customers").table("known")
    orders = job.source(KafkaSource("a"), name="orders")
    orders.join(customers, count, name="join").sink(KafkaSink("out"), name="out")
    orders.sink(KafkaSink("copies"), name="copies")
    paths = Paths.of(job.definition()).to({"copies", "out"})
    assert ({*paths.undetermined}, {*paths.by_time}) == (set(), {"join", "out"})
    assert {node.id: node.inputs for node in paths.nodes if node.inputs} == {
        "known": ("customers",),
        "join": ("orders", "known"),
        "out": ("join",),
        "copies": ("orders",),
    }
    assert paths.meetings == (("customers", "orders"),)


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


def test_topics_that_meet_before_a_key_by_alone_are_read_one_after_the_other() -> None:
    job = Job("job")
    both = job.source(KafkaSource("a"), name="one").merge(job.source(KafkaSource("b"), name="other"))
    windows = both.key_by(len, name="by-length").window(Tumbling("1m")).count(name="count").final()
    windows.map(str).sink(KafkaSink("out", value=String()), name="out")
    paths = Paths.of(job.definition())
    assert (paths.undetermined, paths.by_time, paths.meetings) == ({}, {}, ())


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


def test_windows_that_follow_other_partitions_by_the_clock_are_on_no_path() -> None:
    clicks = Job("job").source(KafkaSource("a"))
    job = clicks.window(Tumbling("1m"), idle="30s").count(name="n").final().sink(KafkaSink("out"))
    paths = Paths.of(job.definition())
    assert {*paths.undetermined} == {"n", "sink-1"}
    assert "(idle=), and when it did, no topic tells" in paths.undetermined["sink-1"]
