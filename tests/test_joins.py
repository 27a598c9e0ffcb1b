"""Joins as a user writes them: what the graph holds of them, and what is refused where it is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import pytest

from twopc import ConfigurationError, Job, Json, KafkaSink, KafkaSource, Record, Stream, String, Table, Tumbling
from twopc.source_groups import source_groups


async def later(value: Any, other: Any) -> Any:
    return value, other


def pair(order: Any, customer: Any) -> list[Any]:
    return [order, customer]


def streams() -> tuple[Stream, Stream]:
    job = Job("enrich")
    return job.source(KafkaSource("orders"), name="orders"), job.source(KafkaSource("in"), name="in")


def replaced(record: Record) -> Record:
    return record


def test_a_join_stands_behind_the_stream_and_the_table() -> None:
    orders, customers = streams()
    job = orders.join(customers.filter(len).table("customers", state=String()), pair, how="left").sink(KafkaSink("out"))
    assert job.describe().splitlines() == [
        "job enrich",
        "  orders     KafkaSource(topics=orders, key=Bytes(), value=Bytes(), start=GroupOffsets())",
        "  in         KafkaSource(topics=in, key=Bytes(), value=Bytes(), start=GroupOffsets())",
        "  filter-1   filter(len)",
        "  customers  table('customers')",
        "  join-1     join(pair, how='left')  <- orders, customers",
        "  sink-1     KafkaSink(topic=out, key=Bytes(), value=Bytes(), delivery_guarantee=exactly_once)",
    ]
    definition = job.definition()
    assert {key: set(sources) for key, sources in definition.keyed_inputs.items()} == {
        "customers": {"in"},
        "join-1": {"orders", "in"},
    }
    assert {str(state): repr(serde) for state, serde in definition.state_serdes.items()} == {
        "customers": "String()",
        "customers/$rows": "Json()",
    }


def test_what_a_join_makes_has_the_key_that_it_had() -> None:
    orders, customers = streams()
    joined = orders.join(customers.table("customers"), pair)
    assert joined.stateful_map(lambda state, value: (state, value), name="n").sink(KafkaSink("out")).definition()


def not_a_table(orders: Stream, customers: Stream) -> None:
    orders.join(cast(Any, "customers"), pair)


def of_another_job(orders: Stream, customers: Stream) -> None:
    orders.join(streams()[1].table("customers"), pair)


def nobody_looks(orders: Stream, customers: Stream) -> None:
    customers.table("customers")
    orders.sink(KafkaSink("out")).definition()


def other_key(orders: Stream, customers: Stream) -> None:
    orders.join(customers.map_records(replaced).table("customers"), pair)


def other_key_of_the_stream(orders: Stream, customers: Stream) -> None:
    orders.map_records(replaced).join(customers.table("customers"), pair)


def with_oneself(orders: Stream, customers: Stream) -> None:
    orders.merge(customers).join(customers.filter(len).table("customers"), pair)


def two_names(orders: Stream, customers: Stream) -> None:
    customers.table("customers")
    orders.table("customers")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            not_a_table,
            "'customers' is no table of this job: a stream is joined with",
        ),
        (of_another_job, "table 'customers' of job 'enrich' is no table of this job: a stream is joined with"),
        (nobody_looks, "no stream looks into customers, table('customers'): join one with it, or leave it out"),
        (other_key, "table('customers') keeps a state for each key under each partition number, and map_records"),
        (other_key_of_the_stream, "join(pair, how='inner') keeps a state for each key under each partition number"),
        (with_oneself, "join(pair, how='inner') joins records of 'in' with the same records"),
        (
            lambda orders, customers: orders.join(customers.table("c"), pair, key=len),
            "table('c') is looked up by the key of the record: bring the stream to that with key_by, or make it a",
        ),
        (two_names, "more than one operator named 'customers'"),
        (lambda orders, customers: orders.table("a.b"), "the name of a table, 'a.b', has a dot"),
        (lambda orders, customers: orders.table("a", state=cast(Any, Json)), "must be a serde such as Json()"),
        (lambda orders, customers: orders.join(customers.table("c"), cast(Any, 3)), "join needs a function, not int"),
    ],
)
def test_what_can_be_no_join_is_refused_where_it_is_written(
    build: Callable[[Stream, Stream], object], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        build(*streams())


def test_a_table_says_whose_it_is() -> None:
    assert isinstance(streams()[1].table("customers"), Table)


def test_sources_that_meet_have_one_order_and_those_of_tables_come_first_in_it() -> None:
    job = Job("enrich")
    orders, customers, beside, a, b = (job.source(KafkaSource(name), name=name) for name in ("o", "c", "n", "a", "b"))
    orders.join(customers.table("customers"), pair).sink(KafkaSink("out"))
    beside.stateful_map(lambda state, value: (state, value), name="alone").sink(KafkaSink("beside"))
    a.merge(b).stateful_map(lambda state, value: (state, value), name="both").sink(KafkaSink("all"))
    assert set(source_groups(job.definition())) == {("c", "o"), ("a", "b")}


def test_streams_that_have_looked_into_one_table_may_be_joined() -> None:
    job = Job("enrich")
    a, b, customers = (job.source(KafkaSource(name), name=name) for name in ("a", "b", "c"))
    table = customers.table("customers")
    joined = a.join(table, pair).join(b.join(table, pair), pair, within="5m", name="paid")
    joined.join(table, pair, how="left").sink(KafkaSink("out"))
    assert source_groups(job.definition()) == (("c", "a", "b"),)


@pytest.mark.parametrize(
    ("build", "groups"),
    [
        (lambda keyed: keyed.window(Tumbling("1m")).count(name="n").final(), (("a", "b"),)),
        (lambda keyed: keyed.key_by(len, name="again").window(Tumbling("1m")).count(name="n").final(), (("a", "b"),)),
        (lambda keyed: keyed.stateful_map(lambda state, value: (state, value), name="n"), ()),
    ],
)
def test_sources_that_meet_before_a_key_by_have_one_order_where_time_counts_behind_it(
    build: Callable[[Stream], Stream], groups: tuple[tuple[str, ...], ...]
) -> None:
    job = Job("merged")
    a, b = (job.source(KafkaSource(name), name=name) for name in ("a", "b"))
    build(a.merge(b).key_by(len, name="by-length")).sink(KafkaSink("out", value=Json()))
    definition = job.definition()
    assert source_groups(definition) == groups
    assert definition.keyed_sources >= {each for met in groups for each in met}


@pytest.mark.parametrize(
    ("source", "is_ordered"),
    [(KafkaSource("a"), False), (KafkaSource(["a", "b"]), True), (KafkaSource(pattern="a.*"), True)],
)
def test_a_source_alone_has_an_order_where_it_may_read_several_topics_and_time_counts(
    source: KafkaSource, is_ordered: bool
) -> None:
    builds: list[tuple[Callable[[Stream], Stream], bool]] = [
        (lambda stream: stream.window(Tumbling("1m")).count(name="n").final(), True),
        (lambda stream: stream.stateful_map(lambda state, value: (state, value), name="n"), False),
        (lambda stream: stream.map(len), False),
    ]
    for build, counts in builds:
        job = Job("one")
        build(job.source(source)).sink(KafkaSink("out", value=Json()))
        assert source_groups(job.definition()) == ((("source-1",),) if is_ordered and counts else ())


def test_sources_that_meet_through_others_have_one_order() -> None:
    job = Job("enrich")
    orders, customers, products = (job.source(KafkaSource(name), name=name) for name in ("o", "c", "p"))
    joined = orders.join(customers.table("customers"), pair)
    joined.join(products.table("products"), pair).sink(KafkaSink("out"))
    assert source_groups(job.definition()) == (("c", "p", "o"),)


def test_a_join_without_a_name_has_one_of_what_both_sides_read_whatever_else_is_in_the_job() -> None:
    for others in (0, 2):
        job = Job("paid")
        beside = [job.source(KafkaSource(f"beside-{number}")) for number in range(others)]
        orders, payments, more = (job.source(KafkaSource(name)) for name in ("orders.v1", "payments", "more"))
        for stream in beside:
            stream.join(more, pair, within="1m").sink(KafkaSink("beside"))
        orders.merge(more).filter(len).join(payments, pair, within="5m").sink(KafkaSink("out"))
        assert "orders_v1-more-join-payments" in job.definition().steps


def test_two_joins_of_the_same_inputs_need_names() -> None:
    job = Job("paid")
    a, b = (job.source(KafkaSource(name)) for name in "ab")
    a.join(b, pair, within="1m")
    with pytest.raises(ConfigurationError, match="more than one operator named 'a-join-b'"):
        a.join(b, pair, within="5m")


def test_a_join_of_streams_keeps_both_sides_under_its_name() -> None:
    orders, payments = streams()
    joined = orders.join(payments, pair, within="5m", grace="10s", name="paid", states=(String(), Json()))
    definition = joined.stateful_map(lambda state, value: (state, value), name="n").sink(KafkaSink("out")).definition()
    assert (
        "join(pair, how='inner', within=300000ms, grace=10000ms, name='paid')  <- orders, in" in definition.describe()
    )
    assert {str(state) for state in definition.state_serdes if state.operator == "paid"} == {
        "paid/$stream-time",
        "paid/$timers",
        "paid/left",
        "paid/right",
    }
    assert {key: set(sources) for key, sources in definition.keyed_inputs.items()} == {
        "paid": {"orders", "in"},
        "n": {"orders", "in"},
    }


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda a, b: a.join(b, pair), 'a join of streams is within a time: join(..., within="5m")'),
        (
            lambda a, b: a.join(a._job.source(KafkaSource(pattern="x.*")), pair, within="5m"),
            "give the join a name, name=",
        ),
        (lambda a, b: a.join(b, pair, within="soon", name="x"), "within of a join"),
        (lambda a, b: a.join(b, pair, within="5m", how=cast(Any, "right"), name="x"), "'inner', 'left', 'outer'"),
        (lambda a, b: a.join(b, cast(Any, 3), within="5m", name="x"), "a join of streams needs a function, not int"),
        (lambda a, b: a.join(b, later, within="5m", name="x"), "a join of streams can't run a coroutine function"),
        (lambda a, b: a.join(a.map(len), pair, within="5m", name="x"), "joins records of 'orders' with"),
        (lambda a, b: a.join(b.map_records(replaced), pair, within="5m", name="x"), "may change the key"),
        (lambda a, b: a.join(b.table("t"), pair, within="5m"), "a table has no time"),
        (lambda a, b: a.join(b.table("t"), pair, how="outer"), "how of a join with a table is one of 'inner', 'left'"),
    ],
)
def test_what_can_be_no_join_of_streams_is_refused_where_it_is_written(
    build: Callable[[Stream, Stream], object], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        build(*streams())


def test_a_join_of_tables_without_a_name_has_one_of_what_both_sides_read() -> None:
    orders, customers = streams()
    joined = orders.table("orders-now").join(customers.table("customers"), pair)
    job = joined.changes().sink(KafkaSink("out"))
    assert job.definition().describe().splitlines()[-2:] == [
        "  orders-join-in  join(pair, how='inner', name='orders-join-in')  <- orders, in",
        "  sink-1          KafkaSink(topic=out, key=Bytes(), value=Bytes(), delivery_guarantee=exactly_once)",
    ]


def test_a_table_that_only_other_tables_are_joined_with_is_not_kept_by_itself() -> None:
    orders, customers = streams()
    kept, joined = orders.table("orders-now"), customers.table("customers")
    kept.join(joined, pair, name="both").changes().sink(KafkaSink("out"))
    job = orders.join(joined, pair).sink(KafkaSink("also"))
    assert job.definition().steps.keys() == {"both", "customers", "join-2"}


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (
            lambda one, other: one.table("t").join(other, pair),
            "is no table of this job: a table is joined",
        ),
        (lambda one, other: one.table("t").join(streams()[0].table("u"), pair), "is no table of this job"),
        (
            lambda one, other: one.table("t").join(other.table("u"), pair, how="right"),
            "how of a join of tables",
        ),
        (lambda one, other: one.table("t").join(other.table("u"), "pair"), "a join of tables needs a function"),
        (lambda one, other: one.table("t").join(other.table("u"), later), "a join of tables can't run a coroutine"),
        (lambda one, other: one.table("t", broadcast=True).changes(), "its changes are no stream of the job"),
        (lambda one, other: one.table("t").join(other.table("u", broadcast=True), pair), "its changes are no stream"),
        (
            lambda one, other: one.table("t").join(one.table("u"), pair, name="n"),
            "joins records of 'orders' with",
        ),
    ],
)
def test_what_can_be_no_join_of_tables_is_refused_where_it_is_written(
    written: Callable[[Stream, Stream], Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        written(*streams())


def test_a_join_of_tables_that_nobody_takes_is_refused() -> None:
    orders, customers = streams()
    orders.table("a").join(customers.table("b"), pair, name="n")
    job = orders.sink(KafkaSink("out"))
    with pytest.raises(ConfigurationError, match="no stream looks into n-table"):
        job.definition()


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (lambda one, other: one.join_as_of(other, pair, keep="1h"), "is no table of this job: join_as_of needs one"),
        (lambda one, other: one.join_as_of(other.table("t"), pair, keep="long"), "keep of join_as_of: 'long' is not a"),
        (lambda one, other: one.join_as_of(other.table("t"), pair, keep="1h", how="outer"), "how of join_as_of is one"),
        (
            lambda one, other: one.join_as_of(other.table("t"), pair, keep="1h", grace="x"),
            "grace of join_as_of: 'x'",
        ),
        (
            lambda one, other: one.join_as_of(other.table("t"), pair, keep="1s", grace="2s"),
            "are kept for 1000 ms, and records wait for 2000 ms: make keep at least as long",
        ),
        (lambda one, other: one.join_as_of(other.table("t"), None, keep="1h"), "join_as_of needs a function"),
        (lambda one, other: one.join_as_of(other.table("t"), later, keep="1h"), "join_as_of can't run a coroutine"),
        (
            lambda one, other: one.join_as_of(other.table("t", broadcast=True), pair, keep="1h"),
            "are no stream of the job",
        ),
    ],
)
def test_what_can_be_no_join_as_of_a_time_is_refused_where_it_is_written(
    written: Callable[[Stream, Stream], Any], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        written(*streams())
