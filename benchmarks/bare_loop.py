"""The yardstick: a bare confluent-kafka loop from one topic into another, with a whole checkpoint inside.

No framework: a process a subtask, and in each three producers in turn; once an interval flush, positions into the
transaction, DescribeTransactions, switch to the next producer, and commit on a thread beside the loop. The settings are
those of `twopc.kafka.clients.client_config`, the libraries those of `twopc.serde`, so that the framework is compared
with what it is made of. Its state, where a job has any, is a dict that dies with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from twopc.kafka.clients.client_config import consumer_config, producer_config, transactional_config
from twopc.kafka.clients.control_client import ControlClient

BATCH = 1_000
SLOTS = 3
DAY_MS = 86_400_000
SCHEMAS = Path(__file__).with_name("jobs")

Transform = Callable[[list[Any]], Iterable[tuple[Any, bytes]]]
"""From a batch of messages to pairs of a message and the value that it becomes."""


def upper() -> Transform:
    """Upper-case each value."""
    return lambda messages: zip(messages, [message.value().upper() for message in messages], strict=True)


def count() -> Transform:
    """Say of each record how many its key has had."""
    totals: dict[bytes, int] = {}

    def transform(messages: list[Any]) -> Iterable[tuple[Any, bytes]]:
        for message in messages:
            key = message.key()
            total = totals[key] = totals.get(key, 0) + 1
            yield message, b"%d" % total

    return transform


def keep_even() -> Transform:
    """Keep what has an even `n`, and add a field; JSON."""

    def transform(messages: list[Any]) -> Iterable[tuple[Any, bytes]]:
        for message in messages:
            value = orjson.loads(message.value())
            if value["n"] % 2 == 0:
                yield message, orjson.dumps(value | {"half": value["n"] // 2})

    return transform


def keep_even_avro() -> Transform:
    """Do the same in Avro."""
    numbered, halved = (parse_schema(json.loads((SCHEMAS / f"{n}.avsc").read_text())) for n in ("numbered", "halved"))

    def transform(messages: list[Any]) -> Iterable[tuple[Any, bytes]]:
        for message in messages:
            value = schemaless_reader(BytesIO(message.value()), numbered, None)
            if value["n"] % 2 == 0:
                buffer = BytesIO()
                schemaless_writer(buffer, halved, value | {"half": value["n"] // 2}, strict_allow_default=True)
                yield message, buffer.getvalue()

    return transform


JOBS: dict[str, Callable[[], Transform]] = {
    "upper": upper,
    "count": count,
    "keep_even": keep_even,
    "keep_even_avro": keep_even_avro,
}


def producers(servers: str, prefix: str) -> list[Producer]:
    """Make the producers, initialised."""
    made = []
    for slot in range(SLOTS):
        producer = Producer(transactional_config(producer_config(servers, {}), f"{prefix}-{slot}", DAY_MS))
        producer.init_transactions(30)
        made.append(producer)
    return made


def assigned(consumer: Consumer, source: str, subtask: int, subtasks: int) -> tuple[list[TopicPartition], int]:
    """Return the subtask's partitions and how many records they have."""
    numbers = [n for n in consumer.list_topics(source).topics[source].partitions if n % subtasks == subtask]
    partitions = [TopicPartition(source, number, 0) for number in numbers]
    return partitions, sum(consumer.get_watermark_offsets(each)[1] for each in partitions)


def next_checkpoint(now: float, interval_s: float) -> float:
    """Return when the next checkpoint is due after one that ends now."""
    return now + interval_s


def copy(
    servers: str, source: str, target: str, transform: Transform, interval_s: float, subtask: tuple[int, int]
) -> None:
    """Read what is in the subtask's partitions of `source` and write what becomes of it to `target`."""
    group = f"bare-{target}-{subtask[0]}"
    consumer = Consumer(consumer_config(servers, group, {}) | {"enable.partition.eof": False})
    partitions, records = assigned(consumer, source, *subtask)
    consumer.assign(partitions)
    slots = cycle(enumerate(producers(servers, group)))
    number, producer = next(slots)
    producer.begin_transaction()
    produce = producer.produce
    done, checkpoint_at = 0, next_checkpoint(time.monotonic(), interval_s)
    with ControlClient(servers, {}) as control, ThreadPoolExecutor(1) as committer:

        def checkpoint(slot: int, ending: Producer) -> None:
            ending.flush(60)
            ending.send_offsets_to_transaction(consumer.position(partitions), consumer.consumer_group_metadata())
            control.describe_transaction(f"{group}-{slot}")
            committer.submit(ending.commit_transaction, 60)

        while done < records:
            messages: list[Any] = consumer.consume(BATCH, 0.1)
            for message, value in transform(messages):
                key, stamp = message.key(), message.timestamp()[1]
                while True:
                    try:
                        produce(target, value, key, -1, None, None, stamp)
                        break
                    except BufferError:
                        producer.poll(0.01)
            producer.poll(0)
            done += len(messages)
            if done >= records or time.monotonic() >= checkpoint_at:
                checkpoint(number, producer)
                number, producer = next(slots)
                producer.begin_transaction()
                produce = producer.produce
                checkpoint_at = next_checkpoint(time.monotonic(), interval_s)
    consumer.close()


def main() -> None:
    """Parse; copy, or start a process a subtask that does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--job", choices=list(JOBS), default="upper")
    parser.add_argument("--interval-seconds", type=float, default=1.0)
    parser.add_argument("--subtasks", type=int, default=1)
    parser.add_argument("--subtask", type=int)
    options = parser.parse_args()
    if options.subtask is None and options.subtasks > 1:
        commands = [[sys.executable, *sys.argv, "--subtask", str(number)] for number in range(options.subtasks)]
        # All are started before the first is waited for.
        processes = [subprocess.Popen(command) for command in commands]
        if any(process.wait() for process in processes):
            raise SystemExit("a subtask has failed")
        return
    servers, source, target = options.bootstrap_servers, options.source, options.target
    subtask = (options.subtask or 0, options.subtasks)
    copy(servers, source, target, JOBS[options.job](), options.interval_seconds, subtask)


if __name__ == "__main__":
    main()
