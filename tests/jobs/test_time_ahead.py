"""A run that let time go too far, and the next one, which sets it back: by the command line, on a real broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

HOUR_MS = 3_600_000

JOB = """
import os
from twopc import Job, Json, KafkaSink, KafkaSource, Processor, Record, Skip, ValueState

class Total(Processor):
    total = ValueState(Json())

    def process(self, record, context):
        self.total.set((self.total.get() or 0) + 1)
        context.set_timer(context.timestamp + 3_600_000)
        yield record.replace(value=self.total.get(), timestamp=None)

    def on_timer(self, at, context):
        return Record(context.key, "timer")

name = os.environ["JOB_NAME"]
job = Job(name, on_error=Skip(most=0.99))
read = job.source(KafkaSource(f"{name}-in", value=Json()), timestamp=lambda value: value)
read.process(Total(), name="total").sink(KafkaSink(f"{name}-out", value=Json()))
"""


@pytest.mark.proof
def test_time_that_went_too_far_is_named_at_the_next_start_and_set_back_with_the_state_kept(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("in", "out"):
        create_topic(servers, f"{name}-{suffix}")
    (tmp_path / "job.py").write_text(JOB)
    now_ms = time.time_ns() // 1_000_000

    def run(*records: tuple[bytes, int], options: tuple[str, ...] = ()) -> CommandResult:
        produce(servers, f"{name}-in", [Write(b"%d" % at, key=key) for key, at in records])
        at = ("-b", servers, "--checkpoint-dir", str(tmp_path / "checkpoints"), "--host", "process", "--until-end")
        done = twopc("run", str(tmp_path / "job.py"), *at, *options, JOB_NAME=name)
        assert done.code == 0, done.err
        return done

    def out() -> list[object]:
        return [json.loads(record.value or b"") for record in read_topic(servers, f"{name}-out")]

    run((b"a", now_ms), (b"odd", now_ms + 48 * HOUR_MS), options=("--max-time-ahead", "72h"))
    assert out() == [1, "timer", 1]
    said = run((b"a", now_ms + 1), (b"odd", now_ms + 49 * HOUR_MS)).err
    assert "the stream time of 'total' is up to" in said
    assert "--set-time-back" in said
    assert out()[3:] == [2, "timer"], (
        "the one that is too far ahead is skipped; time stands far ahead, so a timer is due"
    )
    said = run((b"a", now_ms + 2), (b"b", now_ms + 3), options=("--set-time-back",)).err
    assert "is set back to" in said
    assert out()[5:] == [3, 1], "a timer waits for its time again"
