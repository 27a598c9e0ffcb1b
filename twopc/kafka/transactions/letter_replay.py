"""Puts dead letters back where their records came from, once each: record and mark are in one transaction.

A mark is a record of the letters' own topic without key and value, whose header says which letter was replayed. So what
was replayed is told by the topic itself, to whoever looks, for as long as it has the letters.

Invariants:

- One transactional id belongs to a topic of letters: who opens it ends what another has open, so two replays at a time
  don't put one letter back twice. The one that was first is refused with its next transaction.
- Who decides which letters are left has seen every mark: `whole_now` waits until nothing open hides one.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer

from twopc.errors import ConfigurationError, Fenced, Unavailable
from twopc.kafka.clients.client_config import producer_config, transactional_config
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.failures import error_of, failure
from twopc.kafka.clients.retry import backoff
from twopc.kafka.found_letter import REPLAYED, FoundLetter
from twopc.kafka.input.topic_reader import Ranges, high_watermarks, whole

TRANSACTION_MS = 60_000
ANSWER_SECONDS = 30.0
ROOM_SECONDS = 0.05
HIDDEN_SECONDS = 60.0

Headers = list[tuple[str, str | bytes | None]]


def whole_now(cluster: Cluster, topic: str) -> Ranges:
    """Return where a topic begins and ends, once a read_committed reader sees all that it has now."""
    partitions = whole(cluster, [topic])
    ends = high_watermarks(cluster, partitions)
    hidden = sorted(ends)
    for _ in backoff(HIDDEN_SECONDS):
        ranges = whole(cluster, [topic])
        hidden = [each for each in hidden if ranges[each][1] < ends[each]]
        if not hidden:
            return ranges
    raise Unavailable(
        f"an open transaction hides the end of {hidden[0]}, and with it which letters were replayed: run it "
        "again when that has ended (twopc jobs show says what a job has open)"
    )


class LetterReplay:
    """The replay of the letters of one topic. Leaving its context aborts what is open."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._topic = topic
        config = producer_config(cluster.servers, cluster.properties)
        name = f"twopc-dead-letters-{topic}"
        try:
            self._producer = Producer(transactional_config(config, name, TRANSACTION_MS))
            self._producer.init_transactions(ANSWER_SECONDS)
        except KafkaException as error:
            raise failure(f"initialising transactional id {name}", error_of(error)) from error
        self._is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._is_open:
            self._abort()

    def put_back(self, letters: Sequence[FoundLetter]) -> None:
        """Write the record of each of these letters, and its mark: all of them, or nothing."""
        try:
            self._producer.begin_transaction()
            self._is_open = True
            for letter in letters:
                assert letter.origin is not None, "it says where its record was"
                place = f"{letter.place}".encode()
                own: Headers = [header for header in letter.headers if header[0] != REPLAYED]
                number = letter.origin.partition.partition
                self._produce(letter.origin.partition.topic, number, letter, [*own, (REPLAYED, place)])
                self._produce(self._topic, letter.place.partition.partition, None, [(REPLAYED, place)])
            self._producer.commit_transaction(ANSWER_SECONDS)
            self._is_open = False
        except KafkaException as error:
            self._raise(error)

    def _produce(self, topic: str, number: int, letter: FoundLetter | None, headers: Headers) -> None:
        key, value, stamp = (None, None, None) if letter is None else (letter.key, letter.value, letter.timestamp)
        while True:
            try:
                self._producer.produce(topic, value, key, number, headers=headers, timestamp=stamp or 0)
            except BufferError:
                self._producer.poll(ROOM_SECONDS)
            else:
                return

    def _raise(self, error: KafkaException) -> None:
        told = failure(f"replaying letters of {self._topic}", error_of(error))
        if isinstance(told, Fenced):
            self._is_open = False
            raise ConfigurationError(
                f"another replay of letters of {self._topic!r} has begun, and goes on in the place of this one: what "
                "this one had told as replayed is, and nothing more"
            ) from error
        raise told from error

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(ANSWER_SECONDS)
        except KafkaException:
            # The next one that opens ends it, or the broker does after its time-out: nobody sees it until then.
            return
