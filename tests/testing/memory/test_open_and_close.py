"""What a processor prepares for itself: once in each attempt, before its first record, and let go behind its last."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc import Context, Job, Json, KafkaSink, KafkaSource, MapState, Processor, Record, UserCodeError, ValueState
from twopc.testing import MemoryRun


class Told(Processor):
    """Writes what is called; counts by key, and by value, from ten on."""

    count = ValueState(Json())
    by_value = MapState(Json())

    def __init__(self, log: Path) -> None:
        self.log = log
        self.step = 0

    def open(self) -> None:
        self.step = 10
        self._tell("open")

    def close(self) -> None:
        self._tell("close")

    def process(self, record: Record, context: Context) -> Record:
        self.count.set(self.count.get(0) + self.step)
        self.by_value.put("x", self.by_value.get("x", 5) + 1)
        self._tell("process")
        return record.replace(value=[self.count.get(), self.by_value.get("x")])

    def _tell(self, word: str) -> None:
        with self.log.open("a") as file:
            file.write(f"{word}\n")


def job_of(processor: Processor) -> Job:
    job = Job("told")
    job.source(KafkaSource("in", value=Json())).process(processor, name="told").sink(KafkaSink("out", value=Json()))
    return job


def test_a_processor_is_opened_before_its_first_record_and_closed_behind_its_last(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with MemoryRun(job_of(Told(log))) as run:
        for _ in range(2):
            run.send("in", 1, key=b"a")
        run.checkpoint()
        assert [each.value for each in run.read("out")] == [[10, 6], [20, 7]]
    assert log.read_text().split() == ["open", "process", "process", "close"]


class Broken(Told):
    def open(self) -> None:
        raise OSError("no such model")


def test_a_processor_that_can_t_be_opened_is_named_and_closes_those_that_were(tmp_path: Path) -> None:
    log = tmp_path / "log"
    job = Job("two")
    stream = job.source(KafkaSource("in", value=Json()))
    stream.process(Told(log), name="first").sink(KafkaSink("out", value=Json()))
    stream.process(Broken(log), name="second").sink(KafkaSink("out", value=Json()))

    def run_it() -> None:
        with MemoryRun(job) as run:
            run.send("in", 1, key=b"a")
            run.checkpoint()

    said = r"before the first record: open\(\) of process\(Broken.* failed: OSError: no such model \(test_open_and"
    with pytest.raises(UserCodeError, match=said):
        run_it()
    assert log.read_text().split() == ["open", "close"]
