"""The input of a benchmark: values of a size and a serde, made once and produced again and again."""

from __future__ import annotations

import itertools
import string
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from twopc.bench.plan import BenchPlan
from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.output.topic_writer import TopicWriter
from twopc.serde import Avro, Json, Serde

DISTINCT_VALUES = 1_000
POLL_EVERY = 2_000
_LETTERS = string.ascii_lowercase + " "


def values_of(plan: BenchPlan, serde: Serde) -> list[bytes]:
    """Return the values that the input consists of; raise ConfigurationError where none can be made."""
    if plan.sample is not None:
        return _lines(plan)
    if isinstance(serde, Avro):
        return _avro(serde)
    make = _json if isinstance(serde, Json) else _text
    rng = Random(plan.record_bytes)
    return [make(rng, number, plan.record_bytes) for number in range(DISTINCT_VALUES)]


def produce_all(cluster: Cluster, topic: str, plan: BenchPlan, values: list[bytes], records: int) -> int:
    """Produce so many records, as fast as it goes, and return how many; raise Unavailable if one didn't arrive."""
    return _Load(cluster, topic, plan, values, records).run(lambda done: None)


class PacedLoad:
    """Produces to one topic at a rate, each record no earlier than it is due; its timestamp is when it was produced."""

    def __init__(
        self, cluster: Cluster, topic: str, plan: BenchPlan, values: list[bytes], records: int, rate: float
    ) -> None:
        self._rate = rate
        self._load = _Load(cluster, topic, plan, values, records)
        self._ended = threading.Event()

    def run(self) -> None:
        """Produce all, unless `stop` is called before; raise Unavailable then, or if a record didn't arrive."""
        began = time.monotonic()

        def wait(done: int) -> None:
            while (ahead := done - (time.monotonic() - began) * self._rate) > 0:
                if self._ended.wait(ahead / self._rate):
                    break
            if self._ended.is_set():
                raise Unavailable("the load was ended before all records were produced")

        self._load.run(wait)

    def stop(self) -> None:
        """End `run`, from another thread; nothing happens if it has ended."""
        self._ended.set()


class _Load:
    def __init__(self, cluster: Cluster, topic: str, plan: BenchPlan, values: list[bytes], records: int) -> None:
        self._topic = topic
        self._plan = plan
        self._values = values
        self._count = records
        tuning = {"linger.ms": 1 if plan.rate else 20, "queue.buffering.max.messages": 200_000}
        self._writer = TopicWriter(replace(cluster, properties={**cluster.properties, **tuning}))

    def run(self, pace: Callable[[int], None]) -> int:
        """Produce all; `pace` is called with how many were produced, every so often, and may wait."""
        every = max(1, self._plan.rate // 200) if self._plan.rate else POLL_EVERY
        for done, (key, value) in enumerate(self._records()):
            if done % every == 0:
                pace(done)
                self._writer.poll()
            self._writer.write(self._topic, value, key)
        return self._writer.finish()

    def _records(self) -> Iterator[tuple[bytes | None, bytes]]:
        keys: list[bytes | None] = [b"key-%d" % number for number in range(self._plan.keys)] or [None]
        # The order of the keys is shuffled once: in order, they would visit RocksDB's blocks one after the other.
        Random(0).shuffle(keys)
        pairs = zip(itertools.cycle(keys), itertools.cycle(self._values), strict=False)
        return itertools.islice(pairs, self._count)


def _lines(plan: BenchPlan) -> list[bytes]:
    assert plan.sample is not None
    try:
        lines = [line for line in plan.sample.read_bytes().splitlines() if line]
    except OSError as error:
        raise ConfigurationError(f"--sample {plan.sample} can't be read: {error.strerror}") from error
    if not lines:
        raise ConfigurationError(f"--sample {plan.sample} is empty: it must have a value on each line")
    return lines


def _text(rng: Random, number: int, size: int) -> bytes:
    text = f"{number} " + "".join(rng.choices(_LETTERS, k=size))
    return text[:size].encode()


def _json(rng: Random, number: int, size: int) -> bytes:
    body = {"n": number, "user": f"user-{number % 97}", "amount": round(rng.uniform(0, 1000), 2), "text": ""}
    room = size - len(Json().serialize(body) or b"")
    body["text"] = "".join(rng.choices(_LETTERS, k=max(0, room)))
    encoded = Json().serialize(body)
    assert encoded is not None
    return encoded


def _avro(serde: Avro) -> list[bytes]:
    made = (serde.serialize(value) for value in serde.examples(DISTINCT_VALUES))
    return [value for value in made if value is not None]
