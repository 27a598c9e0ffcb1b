"""The yardstick: a bare confluent-kafka loop that upper-cases one topic into another, with a whole checkpoint inside.

One process, no framework: three producers in turn; once an interval flush, positions into the transaction,
DescribeTransactions, switch to the next producer, and commit on a thread beside the loop. The settings are those that
`twopc.kafka.client_config` uses, so that the framework is compared with what it is made of.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from twopc.kafka.client_config import consumer_config, producer_config, transactional_config
from twopc.kafka.wire import ControlClient

BATCH = 1_000
SLOTS = 3
DAY_MS = 86_400_000


def producers(servers: str, prefix: str) -> list[Producer]:
    """Make the producers, initialised."""
    made = []
    for slot in range(SLOTS):
        producer = Producer(transactional_config(producer_config(servers, {}), f"{prefix}-{slot}", DAY_MS))
        producer.init_transactions(30)
        made.append(producer)
    return made


def copy(servers: str, source: str, target: str, records: int, interval_s: float, group: str) -> None:
    """Read `records` records of `source` and write them, upper-cased, to `target`."""
    consumer = Consumer(consumer_config(servers, group, {}))
    partitions = [
        TopicPartition(source, number, 0) for number in consumer.list_topics(source).topics[source].partitions
    ]
    consumer.assign(partitions)
    slots = cycle(enumerate(producers(servers, group)))
    number, producer = next(slots)
    producer.begin_transaction()
    produce = producer.produce
    done, checkpoint_at = 0, time.monotonic() + interval_s
    with ControlClient(servers, {}) as control, ThreadPoolExecutor(1) as committer:

        def checkpoint(slot: int, ending: Producer) -> None:
            ending.flush(60)
            ending.send_offsets_to_transaction(consumer.position(partitions), consumer.consumer_group_metadata())
            control.describe_transaction(f"{group}-{slot}")
            committer.submit(ending.commit_transaction, 60)

        while done < records:
            messages: list[Any] = consumer.consume(BATCH, 0.1)
            for message in messages:
                value, key, stamp = message.value().upper(), message.key(), message.timestamp()[1]
                try:
                    produce(target, value, key, -1, None, None, stamp)
                except BufferError:
                    producer.poll(0.01)
                    produce(target, value, key, -1, None, None, stamp)
            producer.poll(0)
            done += len(messages)
            if done >= records or time.monotonic() >= checkpoint_at:
                checkpoint(number, producer)
                number, producer = next(slots)
                producer.begin_transaction()
                produce = producer.produce
                checkpoint_at = time.monotonic() + interval_s
    consumer.close()


def main() -> None:
    """Parse and copy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--interval-seconds", type=float, default=1.0)
    options = parser.parse_args()
    copy(
        options.bootstrap_servers,
        options.source,
        options.target,
        options.records,
        options.interval_seconds,
        f"bare-{options.target}",
    )


if __name__ == "__main__":
    main()
