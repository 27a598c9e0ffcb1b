"""Timestamps that no broker takes: in memory they are refused as production's output refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from twopc import DeadLetter, Job, KafkaSink, KafkaSource, UserCodeError
from twopc.testing import MemoryRun

GOOD = [1, 1_700_000_000_000, 2**63 - 1, None]


def retimed(stamps: list[Any], **policy: Any) -> Job:
    job = Job("retimed", **policy)
    stream = job.source(KafkaSource("in")).map_records(lambda record: record.replace(timestamp=stamps[record.offset]))
    stream.sink(KafkaSink("out"))
    return job


@pytest.mark.parametrize("bad", [0, -1, -5, 1.5, 2**63, 2**70, "1", float("nan")], ids=repr)
def test_a_timestamp_that_is_no_whole_millisecond_from_1_on_is_an_error_of_its_record(bad: Any) -> None:
    stamps = [*GOOD, bad, 5]
    with MemoryRun(retimed(stamps, on_error=DeadLetter("dead"))) as run:
        for number in range(len(stamps)):
            run.send_raw("in", b"%d" % number)
        run.checkpoint()
        assert [(record.value, record.timestamp) for record in run.read("out")] == [
            (b"0", 1),
            (b"1", 1_700_000_000_000),
            (b"2", 2**63 - 1),
            (b"3", None),
            (b"5", 5),
        ]
        assert [record.value for record in run.read("dead")] == [b"4"]


def test_the_error_names_the_record_the_timestamp_and_what_to_do() -> None:
    with MemoryRun(retimed([1.5])) as run:
        run.send_raw("in", b"x")
        with pytest.raises(UserCodeError, match=r"in\[0\]@0 has the timestamp 1\.5, .*topic out.*map_records"):
            run.checkpoint()
