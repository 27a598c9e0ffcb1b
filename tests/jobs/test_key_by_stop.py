"""A job with key_by that is stopped while its own topic holds records: the next run reads them, and none twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kafka.kit import grow_topic
from twopc import Job, Json, KafkaSink, KafkaSource, events
from twopc.connect import RunSettings
from twopc.driver.run import run
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

RECORDS = 2_000
KEYS = 5


def counting(name: str) -> Job:
    job = Job(name)
    (
        job.source(KafkaSource(f"{name}-in", value=Json()))
        .key_by(lambda number: number % KEYS, name="by-rest")
        .stateful_map(lambda count, number: ((count or 0) + 1,) * 2, name="count")
        .sink(KafkaSink(f"{name}-out", key=Json(), value=Json()))
    )
    return job


def counted(servers: str, name: str) -> dict[bytes, list[int]]:
    """Return the counts of each key, in the order in which they came out."""
    found: dict[bytes, list[int]] = {}
    for record in read_topic(servers, f"{name}-out"):
        found.setdefault(record.key or b"", []).append(int(record.value or b""))
    return found


def test_what_a_stop_leaves_in_the_topic_is_read_by_the_next_run(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    create_topic(servers, f"{name}-in", 2)
    create_topic(servers, f"{name}-out", 1)
    produce(servers, f"{name}-in", [Write(b"%d" % number, partition=number % 2) for number in range(RECORDS)])
    settings = RunSettings(bootstrap_servers=servers, checkpoint_dir=str(tmp_path), host="inline")
    stop = threading.Event()

    def on_event(event: events.Event) -> None:
        # All of the input is read, and nothing of it committed: what reads the topic sees none of it.
        if isinstance(event, events.SubtaskProgress) and event.progress.records_in == RECORDS:
            stop.set()

    run(counting(name).definition(), replace(settings, checkpoint_interval_ms=600_000), on_event=on_event, stop=stop)
    assert stop.is_set()
    assert list(read_topic(servers, f"{name}-out")) == []
    run(counting(name).definition(), replace(settings, until_end=True))
    assert counted(servers, name) == {b"%d" % key: list(range(1, RECORDS // KEYS + 1)) for key in range(KEYS)}


def test_a_job_goes_back_to_where_it_had_read_all_and_to_where_records_of_its_own_were_left(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between the start and the stop there is to be no checkpoint.
    monkeypatch.setattr("coordinator.schedule.SOON_MS", ())
    name, servers = topic(), broker.bootstrap_servers
    create_topic(servers, f"{name}-in", 2)
    create_topic(servers, f"{name}-out", 1)
    settings = RunSettings(bootstrap_servers=servers, checkpoint_dir=str(tmp_path), host="inline", until_end=True)
    settings = replace(settings, checkpoints_retained=50)

    def fill() -> None:
        produce(servers, f"{name}-in", [Write(b"%d" % number, partition=number % 2) for number in range(KEYS * 20)])

    fill()
    drained = run(counting(name).definition(), settings).last_checkpoint_id
    fill()
    stop = threading.Event()

    def on_event(event: events.Event) -> None:
        # What was made of the second half is in the topic, and not read.
        if isinstance(event, events.SubtaskProgress) and event.progress.records_in == KEYS * 20:
            stop.set()

    rare = replace(settings, checkpoint_interval_ms=600_000, until_end=False)
    stopped = run(counting(name).definition(), rare, on_event=on_event, stop=stop).last_checkpoint_id
    run(counting(name).definition(), replace(settings, restore_from=str(drained)))
    assert counted(servers, name) == {b"%d" % key: list(range(1, 41)) for key in range(KEYS)}
    run(counting(name).definition(), replace(settings, restore_from=str(stopped)))
    again = [*range(1, 41), *range(21, 41)]
    assert counted(servers, name) == {b"%d" % key: again for key in range(KEYS)}


def test_partitions_that_somebody_adds_to_the_topic_hold_nothing_for_a_job_that_goes_back_to_before_that(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    create_topic(servers, f"{name}-in", 2)
    create_topic(servers, f"{name}-out", 1)
    settings = RunSettings(bootstrap_servers=servers, checkpoint_dir=str(tmp_path), host="inline", until_end=True)
    settings = replace(settings, checkpoints_retained=50)
    job = Job(name)
    by_number = job.source(KafkaSource(f"{name}-in", value=Json())).key_by(lambda number: number, name="by-number")
    by_number.sink(KafkaSink(f"{name}-out", key=Json(), value=Json()))

    def run_on(first: int, settings: RunSettings) -> int:
        produce(servers, f"{name}-in", [b"%d" % number for number in range(first, first + 50)])
        return run(job.definition(), settings).last_checkpoint_id

    before = run_on(0, settings)
    grow_topic(servers, f"{name}-by-number-repartition", 4)
    run_on(50, settings)
    run_on(100, replace(settings, restore_from=str(before)))
    again = Counter(int(record.value or b"") for record in read_topic(servers, f"{name}-out"))
    assert again == Counter([*range(150), *range(50, 100)])
