"""State by key behind functions that leave the key as it is, as the job says; what is not so goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from twopc import ConfigurationError, Context, Job, Json, KafkaSink, KafkaSource, Processor, Record, Stream, String
from twopc.errors import UserCodeError
from twopc.testing import MemoryRun


def renamed(record: Record) -> Record:
    return record.replace(key="x") if record.value == "rename" else record.replace(value=record.value * 2)


def several(record: Record) -> Iterator[Record]:
    yield record
    yield renamed(record)


class Copying(Processor):
    outputs = ("side",)

    def process(self, record: Record, context: Context) -> Record:
        context.output("side", renamed(record) if record.value == "aside" else record)
        return record.replace(key="x") if record.value == "rename" else record


class Aside(Copying):
    def process(self, record: Record, context: Context) -> Record:
        context.output("side", renamed(record))
        return record


Build = Callable[[Stream, bool], Stream]


def mapped(stream: Stream, keeps_key: bool) -> Stream:
    return stream.map_records(renamed, keeps_key=keeps_key)


def flat_mapped(stream: Stream, keeps_key: bool) -> Stream:
    return stream.flat_map_records(several, keeps_key=keeps_key)


def processed(stream: Stream, keeps_key: bool) -> Stream:
    made = stream.process(Copying(), name="copying", keeps_key=keeps_key)
    made.side_output("side").sink(KafkaSink("aside", key=String(), value=Json()))
    return made


def put_aside(stream: Stream, keeps_key: bool) -> Stream:
    made = stream.process(Aside(), name="copying", keeps_key=keeps_key)
    made.sink(KafkaSink("aside", key=String(), value=Json()))
    return made.side_output("side")


async def renamed_later(record: Record) -> Record:
    return renamed(record)


def awaited(stream: Stream, keeps_key: bool) -> Stream:
    return stream.map_async_records(renamed_later, keeps_key=keeps_key)


def renamed_in_arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    keys = [
        "x" if value == "rename" else key for key, value in zip(batch["key"], batch["value"].to_pylist(), strict=True)
    ]
    return batch.set_column(0, "key", pa.array(map(str, keys), pa.string()))


def by_batch(stream: Stream, keeps_key: bool) -> Stream:
    return stream.map_batches(renamed_in_arrow, keeps_key=keeps_key)


BUILDS = pytest.mark.parametrize("build", [mapped, flat_mapped, processed, put_aside, awaited, by_batch])


def counting(build: Build, keeps_key: bool) -> Job:
    job = Job("counting")
    stream = build(job.source(KafkaSource("in", key=String(), value=Json())), keeps_key)
    counts = stream.stateful_map(lambda seen, _: ((seen or 0) + 1, (seen or 0) + 1), name="count")
    counts.sink(KafkaSink("out", key=String(), value=Json()))
    return job


@BUILDS
def test_state_by_key_may_follow_what_says_that_it_keeps_the_key_and_nothing_else(build: Build) -> None:
    with pytest.raises(ConfigurationError, match="or say keeps_key=True of map_records"):
        counting(build, False)
    with MemoryRun(counting(build, True), partitions=3, parallelism=2) as run:
        for number in range(6):
            run.send("in", f"v{number}", f"k{number % 3}")
        run.crash("processing")
        run.checkpoint()
        last: dict[Any, Any] = {each.key: each.value for each in run.read("out")}
    count = 4 if build is flat_mapped else 2
    assert last == {"k0": count, "k1": count, "k2": count}


@BUILDS
def test_a_record_with_another_key_goes_wrong_where_the_job_says_that_none_has(build: Build) -> None:
    with MemoryRun(counting(build, True)) as run:
        run.send("in", "rename", "k")
        with pytest.raises(UserCodeError, match=r"records? in\[0\]@0.*another key.*keeps_key=True"):
            run.checkpoint()
