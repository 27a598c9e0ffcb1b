"""A processor that fails on some records and timers, as a job with a policy, through crashes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from twopc import Context, DeadLetter, Job, Json, KafkaSink, KafkaSource, Processor, Record, String, ValueState
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment


class Counted(Processor):
    """Counts by key; raises on every seventh value, behind all that it changes, and on the timers of key 3."""

    outputs = ("seen",)
    count = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        count = (self.count.get() or 0) + 1
        self.count.set(count)
        context.set_timer(record.value + 10)
        context.output("seen", record)
        yield record.replace(value=[record.value, count])
        if record.value % 7 == 0:
            raise LookupError("not to be counted")

    def on_timer(self, at: int, context: Context) -> Record:
        if context.key == "3":
            raise LookupError("no such alarm")
        return Record(context.key, ["at", at, self.count.get()])


RECORDS = 60


def sent(run: MemoryRun, numbers: range) -> None:
    for number in numbers:
        run.send("in", number, str(number % 4), partition=number % 4 % 2)


@pytest.mark.parametrize("after", ["processing", "pre-commit", "completion"])
def test_records_timers_and_dead_letters_are_there_once_after_a_crash(after: Moment) -> None:
    job = Job("counted", on_error=DeadLetter("dead"))
    source = KafkaSource("in", key=String(), value=Json())
    counted = job.source(source, timestamp=lambda value: value).process(Counted(), name="counted")
    counted.sink(KafkaSink("out", key=String(), value=Json()))
    counted.side_output("seen").sink(KafkaSink("seen", key=String(), value=Json()))
    with MemoryRun(job, partitions=2, parallelism=2) as run:
        sent(run, range(RECORDS // 3))
        run.checkpoint()
        sent(run, range(RECORDS // 3, RECORDS))
        run.crash(after=after)
        run.checkpoint()
        out = [record.value for record in run.read("out")]
        good = [number for number in range(RECORDS) if number % 7]
        assert sorted(value for value in out if value[0] != "at") == [
            [number, sum(other % 4 == number % 4 for other in good if other <= number)] for number in good
        ]
        assert sorted(record.value for record in run.read("seen")) == good
        # The greatest times are 58 and 59: what is due at 10 or more behind those has not fired.
        timers = [number for number in good if number + 10 <= RECORDS - 2 + number % 2]
        assert sorted(value[1] for value in out if value[0] == "at") == [
            number + 10 for number in timers if number % 4 != 3
        ]
        dead = run.read("dead")
        assert sorted(int(record.value) for record in dead if record.value is not None) == [
            number for number in range(RECORDS) if number % 7 == 0
        ]
        assert [record.key for record in dead if record.value is None] == [b"3" for n in timers if n % 4 == 3]
