"""Broadcast tables as a user writes them: what the graph holds of them, and what is refused where it is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from twopc import ConfigurationError, DeadLetter, Job, Json, KafkaSink, KafkaSource, Record, Skip, Stream
from twopc.connect import RunSettings, Source
from twopc.context import JobContext
from twopc.kafka.connectors import KafkaConnectors, refuse_broadcasts
from twopc.protocol.ids import AttemptId
from twopc.source import SourcePlanner


def pair(order: Any, product: Any) -> list[Any]:
    return [order, product]


def last(state: Any, value: Any) -> tuple[Any, Any]:
    return value, value


def renamed(record: Record) -> Record:
    return record.replace(key=record.value)


def streams() -> tuple[Stream, Stream]:
    job = Job("enrich")
    return job.source(KafkaSource("orders"), name="orders"), job.source(KafkaSource("in"), name="in")


def test_the_source_of_a_broadcast_table_is_none_of_the_jobs_sources() -> None:
    orders, products = streams()
    table = products.map_records(renamed).table("products", broadcast=True)
    joined = orders.join(table, pair, key=len).stateful_map(last, name="last")
    job = joined.sink(KafkaSink("out"))
    assert job.describe().splitlines()[1:] == [
        "  orders         KafkaSource(topics=orders, key=Bytes(), value=Bytes(), start=GroupOffsets())",
        "  in             KafkaSource(topics=in, key=Bytes(), value=Bytes(), start=GroupOffsets())",
        "  map_records-1  map_records(renamed)",
        "  products       table('products', broadcast=True)",
        "  join-1         join(pair, how='inner', key=len)  <- orders, products",
        "  last           stateful_map(last, name='last')",
        "  sink-1         KafkaSink(topic=out, key=Bytes(), value=Bytes(), delivery_guarantee=exactly_once)",
    ]
    definition = job.definition()
    assert (set(definition.sources), set(definition.broadcasts)) == ({"orders"}, {"in"})
    assert definition.keyed_inputs == {"last": ("orders",)}
    assert {str(state) for state in definition.state_serdes} == {"last"}


def behind_state(orders: Stream, products: Stream) -> None:
    products.stateful_map(last, name="n").table("t", broadcast=True)


def behind_key_by(orders: Stream, products: Stream) -> None:
    products.key_by(len, name="by-length").table("t", broadcast=True)


def behind_a_merge(orders: Stream, products: Stream) -> None:
    products.merge(orders).table("t", broadcast=True)


def read_for_more(orders: Stream, products: Stream) -> None:
    orders.join(products.table("t", broadcast=True), pair)
    products.map(len).sink(KafkaSink("lengths"))


def joined_with_oneself(orders: Stream, products: Stream) -> None:
    products.join(products.table("t", broadcast=True), pair)


def nobody_looks(orders: Stream, products: Stream) -> None:
    products.table("t", broadcast=True)
    orders.sink(KafkaSink("out")).definition()


def dead_letters(orders: Stream, products: Stream) -> None:
    source = orders._job.source(KafkaSource("other"), name="other", on_error=DeadLetter("wrong"))
    source.table("t", broadcast=True)


class Elsewhere(Source):
    """A source that does not say how it is read from its beginning."""

    def open_planner(self, context: JobContext) -> SourcePlanner:
        raise AssertionError

    def open_reader(self, context: Any, splits: Any) -> Any:
        raise AssertionError


def from_elsewhere(orders: Stream, products: Stream) -> None:
    orders._job.source(Elsewhere(), name="other").table("t", broadcast=True)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            behind_state,
            "n, stateful_map(last, name='n'), can't stand before a broadcast table",
        ),
        (behind_key_by, "can't stand before a broadcast table"),
        (behind_a_merge, "merge-1, merge, can't stand before a broadcast table"),
        (read_for_more, "'in' is read by every subtask, for a broadcast table, and map-1, map(len), takes its records"),
        (joined_with_oneself, "'in' is read by every subtask, for a broadcast table, and join-1"),
        (nobody_looks, "no stream looks into t, table('t', broadcast=True)"),
        (dead_letters, "records of 'other' that go wrong can be no dead letters"),
        (from_elsewhere, "Elsewhere does not say how (from_beginning): read it with KafkaSource"),
        (
            lambda orders, products: orders.join(products, pair, within="1m", key=len),
            "two streams meet by their keys: set them with key_by",
        ),
    ],
)
def test_what_can_be_no_broadcast_table_is_refused_where_it_is_written(
    build: Callable[[Stream, Stream], object], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        build(*streams())


def test_streams_that_have_looked_into_one_broadcast_table_may_meet() -> None:
    orders, products = streams()
    returns = orders._job.source(KafkaSource("returns"), name="returns")
    table = products.table("t", broadcast=True)
    met = orders.join(table, pair).join(returns.join(table, pair), pair, within="5m", name="met")
    assert met.sink(KafkaSink("out", value=Json())).definition().sources_before("met") == ("returns", "orders")


def test_what_a_broadcast_table_skips_is_said_by_the_policy_of_its_source() -> None:
    job = Job("enrich", on_error=DeadLetter("wrong"))
    other = job.source(KafkaSource("in"), name="in", on_error=Skip())
    job.source(KafkaSource("orders")).join(other.table("t", broadcast=True), pair).sink(KafkaSink("out", value=Json()))
    assert job.definition().error_policies["in"] == Skip()


def test_drills_refuse_a_job_with_a_broadcast_table() -> None:
    orders, products = streams()
    job = orders.join(products.table("t", broadcast=True), pair).sink(KafkaSink("out"))
    with pytest.raises(ConfigurationError, match=r"can't be drilled: .* read in, for a broadcast table"):
        refuse_broadcasts(job.definition(), "drilled")


def test_what_only_a_broadcast_table_is_made_of_is_no_input_of_whoever_judges_the_job() -> None:
    orders, products = streams()
    job = orders.join(products.table("t", broadcast=True), pair).sink(KafkaSink("out"))
    connectors = KafkaConnectors.only(job.definition(), "benchmarked")
    assert (list(connectors.broadcasts), set(connectors.sources) & set(connectors.broadcasts)) == (["in"], set())


def test_the_driver_plans_what_every_subtask_reads_for_itself_too() -> None:
    planned: list[str] = []

    class Planner(SourcePlanner):
        def __init__(self, name: str) -> None:
            self._name = name

        def plan(self, restored: Any, bounded: bool) -> list[Any]:
            planned.append(self._name)
            return []

    class Named(Elsewhere):
        def __init__(self, name: str) -> None:
            self.name = name

        def from_beginning(self) -> Source:
            return Named(f"all of {self.name}")

        def open_planner(self, context: JobContext) -> SourcePlanner:
            return Planner(self.name)

    job = Job("enrich")
    table = job.source(Named("products")).table("t", broadcast=True)
    definition = job.source(Named("orders")).join(table, pair).sink(KafkaSink("out")).definition()
    context = JobContext("enrich", AttemptId(1), 1, RunSettings())
    with definition.source.open_planner(context) as planner:
        assert planner.plan({}, bounded=False) == []
    assert planned == ["orders", "all of products"]
