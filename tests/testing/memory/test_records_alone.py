"""What a record becomes depends on that record alone, and on the state of its key: never on where batches end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, get_args

import pytest

from twopc import Context, Job, Json, KafkaSink, KafkaSource, Processor, Record, Tumbling, ValueState
from twopc.operators import Step
from twopc.stream import Stream
from twopc.testing import MemoryRun

VALUES = [
    *(1, 2.5, None, "text", True, 2**62, -0.0, [], {}, [1, 2], [1, 2.5], [None, 1]),
    *({"a": 1}, {"a": 0.5}, {"a": 2**53 + 1}, {"a": 1, "b": None}, {"b": "x", "a": 1}, {"a": {"b": [1.0]}}),
]
RECORDS = 45


class Twice(Processor):
    """Emits each value with how many its key had; a second later once more how many."""

    seen = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        count = (self.seen.get() or 0) + 1
        self.seen.set(count)
        context.set_timer((context.timestamp or 0) + 1_000)
        yield record.replace(value=[record.value, count])

    def on_timer(self, at: int, context: Context) -> Iterator[Record]:
        yield Record(context.key, ["after", self.seen.get()])


async def listed(value: Any) -> Any:
    return [value]


def counted(count: int | None, value: Any) -> tuple[int, Any]:
    return (count or 0) + 1, [count, value]


def paired(one: Any, other: Any) -> Any:
    return [one, other]


def joined(job: Job, stream: Stream, broadcast: bool) -> Stream:
    table = job.source(KafkaSource("table", value=Json())).table("held", broadcast=broadcast)
    return stream.join(table, lambda value, held: [value, held], how="left")


OPERATORS: dict[str, Callable[[Job, Stream], Stream]] = {
    "map": lambda _, stream: stream.map(lambda value: [value]),
    "filter": lambda _, stream: stream.filter(lambda value: value != 1),
    "flat_map": lambda _, stream: stream.flat_map(lambda value: [value, value]),
    "map_records": lambda _, stream: stream.map_records(lambda record: record.replace(headers=[("h", b"1")])),
    "filter_records": lambda _, stream: stream.filter_records(lambda record: record.value),
    "flat_map_records": lambda _, stream: stream.flat_map_records(lambda record: [record, record.replace(value=1)]),
    "peek": lambda _, stream: stream.peek(repr),
    "peek_records": lambda _, stream: stream.peek_records(repr),
    "map_batches": lambda _, stream: stream.map_batches(lambda batch: batch),
    "map_async": lambda _, stream: stream.map_async(listed),
    "key_by": lambda _, stream: stream.key_by(repr, name="by"),
    "key_by_records": lambda _, stream: stream.key_by_records(lambda record: repr(record.value), name="by"),
    "stateful_map": lambda _, stream: stream.stateful_map(counted, name="count"),
    "process": lambda _, stream: stream.process(Twice(), name="twice"),
    "window": lambda _, stream: (
        stream.map(lambda value: [value]).window(Tumbling("3s")).reduce(paired, name="w").final().map(lambda w: w.value)
    ),
    "join": lambda job, stream: joined(job, stream, broadcast=False),
    "join with a broadcast table": lambda job, stream: joined(job, stream, broadcast=True),
}


def stamp(value: Any) -> int:
    return len(repr(value))


def job_of(operator: str) -> Job:
    job = Job("alone")
    stream = job.source(KafkaSource("in", value=Json()), timestamp=stamp if operator == "map_records" else None)
    return OPERATORS[operator](job, stream).sink(KafkaSink("out", value=Json()))


def made(operator: str, size: int) -> list[str]:
    """Return what the job writes of records that come in batches of this size."""
    with MemoryRun(job_of(operator)) as run:
        if "join" in operator:
            for number in range(3):
                run.send("table", {"n": number}, b"k%d" % number, timestamp=0)
            run.checkpoint()
        for number, value in enumerate(islice(cycle(VALUES), RECORDS)):
            run.send("in", value, b"k%d" % (number % 4), timestamp=1_000 * (1 + number // 5))
            if number % size == size - 1:
                run.checkpoint()
        run.checkpoint()
        run.checkpoint()
        return [shape(record) for record in run.read("out")]


def shape(record: Record) -> str:
    return repr((record.key, record.value, record.headers, record.timestamp))


@pytest.mark.parametrize("operator", OPERATORS)
def test_batches_of_one_of_seven_and_of_all_records_make_the_same(operator: str) -> None:
    alone = made(operator, 1)
    assert alone
    assert made(operator, 7) == alone
    assert made(operator, 1_000) == alone


def test_no_operator_is_left_out() -> None:
    kinds = {type(each.operation) for operator in OPERATORS for each in job_of(operator).definition().operators}
    assert not set(get_args(Step)) - kinds
