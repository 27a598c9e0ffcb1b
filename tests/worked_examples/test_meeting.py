"""Which record goes first where streams of several topics meet, by the times of their records."""

from __future__ import annotations

import pytest

from twopc import ConfigurationError, Context, Job, Json, KafkaSink, KafkaSource, Processor, Record, String
from twopc.testing import MemoryRun


class Listed(Processor):
    """Passes on what comes, and sees time: so the earlier record goes first."""

    def process(self, record: Record, context: Context) -> Record:
        return record


def merged(records: str) -> list[str]:
    """Return in which order what all is there is seen: `A1` is of topic A, and of the time 1."""
    job = Job("merged")
    one, other = (job.source(KafkaSource(topic, key=String(), value=Json())) for topic in "AB")
    one.merge(other).process(Listed(), name="listed").sink(KafkaSink("out", key=String(), value=Json()))
    with MemoryRun(job) as run:
        for record in records.split():
            run.send(record[0], record, "k", timestamp=int(record[1:]))
        run.checkpoint()
        return [record.value for record in run.read("out")]


def test_a_merge_is_in_time_order() -> None:
    assert merged("A1 A5 A9 B2 B3 B10") == ["A1", "B2", "B3", "A5", "A9", "B10"]


def test_of_a_tie_the_one_that_the_job_names_first_goes_first() -> None:
    assert merged("B5 A5") == ["A5", "B5"]


def test_out_of_order_within_an_input_stays_as_it_is() -> None:
    assert merged("A10 A4 B5 B6") == ["B5", "B6", "A10", "A4"]


def enriched(records: str) -> list[str]:
    """Return what a left join of orders `o` with customers `c` makes of what all is there."""
    job = Job("enriched")
    orders, customers = (job.source(KafkaSource(topic, key=String(), value=Json())) for topic in "oc")
    joined = orders.join(customers.table("customers"), lambda order, customer: f"{order} {customer}", how="left")
    joined.sink(KafkaSink("out", key=String(), value=Json()))
    with MemoryRun(job) as run:
        for record in records.split():
            run.send(record[0], record, "k", timestamp=int(record[1:]))
        run.checkpoint()
        return [record.value for record in run.read("out")]


def test_of_a_tie_the_table_goes_before_the_stream() -> None:
    assert enriched("o5 c5") == ["o5 c5"]


def test_what_is_there_meets_in_the_order_of_time_whichever_was_sent_first() -> None:
    assert enriched("o2 c1 o4 c3") == ["o2 c1", "o4 c3"]


def test_other_numbers_of_partitions_are_refused_at_the_start_by_name() -> None:
    job = Job("enriched")
    orders, customers = (job.source(KafkaSource(topic, value=Json())) for topic in "oc")
    orders.join(customers.table("customers"), lambda order, customer: order).sink(KafkaSink("out", value=Json()))
    with pytest.raises(ConfigurationError, match=r"c: 3, o: 4"):
        MemoryRun(job, partitions={"o": 4, "c": 3})
