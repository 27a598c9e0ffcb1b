"""Feeds the flights of 2013 to a topic while a job runs, so many a second, and knows how many it gave."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import islice

from flights_data import FLIGHT_SCHEMA, NO_TAIL_NUMBER, flights

from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.output.topic_writer import TopicWriter
from twopc.serde import Avro

TURN_SECONDS = 0.1


class Feed:
    """A thread that writes until its context is left; what it wrote has arrived by then, once, in the file's order."""

    def __init__(self, servers: str, topic: str, rate: int) -> None:
        self.given = 0
        self._topic = topic
        self._writer = TopicWriter(Cluster(servers))
        self._rows = _rows()
        self._a_turn = int(rate * TURN_SECONDS)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Write no more, and return when all has arrived."""
        self._ended.set()
        self._thread.join()
        self._writer.finish()

    def give_the_rest(self) -> None:
        """End, and write all flights that are left at once."""
        self.end()
        self._write(self._rows)
        self._writer.finish()

    def _run(self) -> None:
        while not self._ended.wait(TURN_SECONDS):
            self._write(islice(self._rows, self._a_turn))

    def _write(self, rows: Iterator[tuple[bytes, bytes | None]]) -> None:
        for key, value in rows:
            self._writer.write(self._topic, value, key, timestamp=int(time.time() * 1000))
            self.given += 1
        self._writer.poll()


def _rows() -> Iterator[tuple[bytes, bytes | None]]:
    serde = Avro(FLIGHT_SCHEMA)
    for chunk in flights():
        for flight, value in zip(chunk, serde.serialize_all(chunk), strict=True):
            yield (flight["tailnum"] or NO_TAIL_NUMBER).encode(), value
