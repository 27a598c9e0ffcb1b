"""What a path without a Python object per record would reach: librdkafka to Arrow and back, with the whole protocol.

    python benchmarks/arrow_prototype/arrow_copy.py --bootstrap-servers HOST:PORT --source IN --target OUT --records N

The same work as `bare_loop.py` (upper-cased values, keys and timestamps kept, a checkpoint per interval with flush,
positions, DescribeTransactions, switch to the next producer, commit on a thread beside), but records move as columns:
`arrow_io.c`, compiled here with the machine's C compiler, fills and empties Arrow's buffers; pyarrow upper-cases.
Prints one JSON object: records a second and CPU seconds a million records, from the first batch to the last commit.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.compute as pc

from twopc.kafka.client_config import consumer_config, producer_config, transactional_config
from twopc.kafka.wire import ControlClient

HERE = Path(__file__).parent
SLOTS = 3
DAY_MS = 86_400_000
VALUE_ROOM, KEY_ROOM = 1_000, 100
"""Bytes of buffer for each record of a batch."""


def library() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """Return librdkafka as confluent-kafka loaded it, and our own code, compiled against it."""
    wheel = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    found = next(wheel.glob("librdkafka*.so*"))
    rdkafka = ctypes.CDLL(str(found), mode=ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as folder:
        ours = Path(folder) / "arrow_io.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", ours, HERE / "arrow_io.c", str(found)], check=True)
        built = ctypes.CDLL(str(ours))
    for name in ("conf_new", "new", "topic_new", "queue_get_consumer", "consumer_group_metadata"):
        getattr(rdkafka, f"rd_kafka_{name}").restype = ctypes.c_void_p
    for name in ("topic_partition_list_new", "topic_partition_list_add"):
        getattr(rdkafka, f"rd_kafka_{name}").restype = ctypes.c_void_p
    for name in ("init_transactions", "begin_transaction", "send_offsets_to_transaction", "commit_transaction"):
        getattr(rdkafka, f"rd_kafka_{name}").restype = ctypes.c_void_p
    rdkafka.rd_kafka_error_string.restype = ctypes.c_char_p
    built.take.restype = ctypes.c_ssize_t
    return rdkafka, built


class Client:
    """One librdkafka handle."""

    def __init__(self, rdkafka: ctypes.CDLL, kind: int, config: dict[str, Any]) -> None:
        self.lib = rdkafka
        text = ctypes.create_string_buffer(512)
        conf = ctypes.c_void_p(rdkafka.rd_kafka_conf_new())
        for name, value in config.items():
            spelt = str(value).lower() if isinstance(value, bool) else str(value)
            if rdkafka.rd_kafka_conf_set(conf, name.encode(), spelt.encode(), text, 512):
                raise SystemExit(text.value.decode())
        self.handle = ctypes.c_void_p(rdkafka.rd_kafka_new(kind, conf, text, 512))
        if not self.handle:
            raise SystemExit(text.value.decode())

    def call(self, name: str, *arguments: Any) -> None:
        """Call what returns an error object or nothing."""
        error = getattr(self.lib, f"rd_kafka_{name}")(self.handle, *arguments)
        if error:
            raise SystemExit(f"{name}: {self.lib.rd_kafka_error_string(ctypes.c_void_p(error)).decode()}")


class Columns:
    """Buffers for one batch, Arrow's own, so that what is read needs no copy to be an array."""

    def __init__(self, most: int) -> None:
        self.values, self.value_ends = pa.allocate_buffer(most * VALUE_ROOM), pa.allocate_buffer(4 * (most + 1))
        self.keys, self.key_ends = pa.allocate_buffer(most * KEY_ROOM), pa.allocate_buffer(4 * (most + 1))
        self.stamps = pa.allocate_buffer(8 * most)


def at(buffer: pa.Buffer) -> ctypes.c_void_p:
    """Return where a buffer is."""
    return ctypes.c_void_p(buffer.address)


def partition_list(lib: ctypes.CDLL, topic: str, offsets: list[int]) -> ctypes.c_void_p:
    """Return librdkafka's own list of partitions, with an offset each."""
    made = ctypes.c_void_p(lib.rd_kafka_topic_partition_list_new(len(offsets)))
    for number, offset in enumerate(offsets):
        lib.rd_kafka_topic_partition_list_add(made, topic.encode(), number)
        lib.rd_kafka_topic_partition_list_set_offset(made, topic.encode(), number, ctypes.c_int64(offset))
    return made


def copy(options: argparse.Namespace) -> dict[str, float]:
    """Read, upper-case, write, with a checkpoint per interval."""
    lib, ours = library()
    servers, source, group = options.bootstrap_servers, options.source, f"arrow-{options.target}"
    consumer = Client(lib, 1, consumer_config(servers, group, {}) | {"enable.partition.eof": False})
    lib.rd_kafka_poll_set_consumer(consumer.handle)
    lib.rd_kafka_assign(consumer.handle, partition_list(lib, source, [0] * options.partitions))
    queue = ctypes.c_void_p(lib.rd_kafka_queue_get_consumer(consumer.handle))
    metadata = ctypes.c_void_p(lib.rd_kafka_consumer_group_metadata(consumer.handle))
    following = (ctypes.c_int64 * options.partitions)()
    made = []
    for slot in range(SLOTS):
        config = transactional_config(producer_config(servers, {}), f"{group}-{slot}", DAY_MS)
        producer = Client(lib, 0, config)
        producer.call("init_transactions", 30_000)
        topic = ctypes.c_void_p(lib.rd_kafka_topic_new(producer.handle, options.target.encode(), None))
        made.append((slot, producer, topic))
    slots = cycle(made)
    with ControlClient(servers, {}) as control, ThreadPoolExecutor(1) as committer:
        control.topics([options.target])
        slot, producer, topic = next(slots)
        producer.call("begin_transaction")
        done, started, cpu, due = 0, 0.0, 0.0, time.monotonic() + options.interval_seconds
        while done < options.records:
            columns = Columns(options.batch)
            room = (at(columns.values), ctypes.c_size_t(columns.values.size), at(columns.value_ends))
            key_room = (at(columns.keys), ctypes.c_size_t(columns.keys.size), at(columns.key_ends))
            count = ours.take(queue, options.batch, 5, *room, *key_room, at(columns.stamps), following)
            if count < 0:
                raise SystemExit("a record has an error, or is longer than the prototype's buffers")
            if count and not started:
                started, cpu = time.monotonic(), time.process_time()
            if count:
                upper = pc.ascii_upper(pa.StringArray.from_buffers(count, columns.value_ends, columns.values))
                _, ends, text = upper.buffers()
                keys = (at(columns.keys), at(columns.key_ends))
                error = ours.put(
                    producer.handle, topic, ctypes.c_ssize_t(count), at(text), at(ends), *keys, at(columns.stamps)
                )
                if error:
                    raise SystemExit(f"producing failed: {error}")
                done += count
            if done >= options.records or time.monotonic() >= due:
                lib.rd_kafka_flush(producer.handle, 60_000)
                offsets = partition_list(lib, source, list(following))
                producer.call("send_offsets_to_transaction", offsets, metadata, 60_000)
                control.describe_transaction(f"{group}-{slot}")
                committer.submit(producer.call, "commit_transaction", 60_000)
                slot, producer, topic = next(slots)
                producer.call("begin_transaction")
                due = time.monotonic() + options.interval_seconds
        committer.shutdown(wait=True)
    seconds, used = time.monotonic() - started, time.process_time() - cpu
    return {"records_per_second": round(done / seconds), "cpu_seconds_per_million": round(used / done * 1e6, 3)}


def main() -> None:
    """Parse, copy, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--interval-seconds", type=float, default=1.0)
    print(json.dumps(copy(parser.parse_args())))


if __name__ == "__main__":
    main()
