"""One producer of librdkafka, and the delivery reports that a transaction needs of its records."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, ThrottleEvent, TopicPartition

from twopc.errors import CheckpointDeclined, TwoPhaseCommitError, Unavailable
from twopc.kafka import native
from twopc.kafka.clients.bounded_call import Overdue, call_within
from twopc.kafka.clients.client_health import BrokerHealthCheck
from twopc.kafka.clients.delivery_errors import UNDELIVERED_MAX, Deliveries, UndeliveredRecord
from twopc.kafka.clients.failures import error_of, failure
from twopc.kafka.output.backlog import Backlog

if TYPE_CHECKING:
    from twopc.kafka.native._batches import Writer

log = logging.getLogger(__name__)

METADATA_TIMEOUT_SECONDS = 30.0
ABORT_TIMEOUT_SECONDS = 5.0
ALIVE_CHECK_SECONDS = 5.0
POSITIONS_SECONDS = 20.0
POSITIONS_GRACE_SECONDS = 2.0
"""How much longer than it was told librdkafka may take, before nothing is expected of it any more."""
REPORT_POLL_SECONDS = 0.1
BROKER_QUESTIONS = 100
BROKER_PAUSE_SECONDS = 0.01
ROOM_SECONDS = 10.0
"""How long a batch waits until what was written before it is delivered: whoever waits has triggers to answer, too."""
ROOM_TELL_SECONDS = 3.0
ROOM_POLL_SECONDS = 0.005


class TrackedProducer:
    """One producer, what it knows, what it wrote to, and what it failed to deliver. Used by one thread at a time."""

    def __init__(
        self, config: dict[str, Any], doubt: Callable[[], None] = lambda: None, backlog: Backlog | None = None
    ) -> None:
        """`doubt` is called now and then by who waits for the producer: it raises what the wait is in vain for.

        `backlog` bounds what is undelivered, by what it has seen of all producers that share it.
        """
        self._doubt = doubt
        self._backlog = backlog or Backlog(math.inf)
        self.topics: set[str] = set()
        self.deliveries = Deliveries()
        self._known: set[str] = set()
        self._health = BrokerHealthCheck(config)
        module = native.batches()
        self.writer: Writer | None = None if module is None else module.Writer(UNDELIVERED_MAX)
        joined = {} if self.writer is None else native.settings_for(self.writer.number)
        calls = {
            "on_delivery": self._on_delivery,
            "error_cb": self._health.on_error,
            "throttle_cb": self._on_throttle,
        }
        try:
            self.client = Producer({**config, **calls, **joined})
        except KafkaException as error:
            raise failure("making a producer", error_of(error)) from error

    def _on_delivery(self, error: KafkaError, message: Message) -> None:
        """Called for failed records only."""
        partition = message.partition()
        self.deliveries.failed(
            UndeliveredRecord(
                error, str(message.topic()), -1 if partition is None else partition, message.key(), message.value()
            )
        )

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self._backlog.throttled(event.broker_name, event.throttle_time)

    def _note_failures(self) -> None:
        """Note the failed records that the compiled part wrote: confluent-kafka has no report of those."""
        for code, topic, partition, key, value in () if self.writer is None else self.writer.take_failures():
            self.deliveries.failed(UndeliveredRecord(KafkaError(code), topic, partition, key, value))

    def reset(self) -> None:
        """Forget what the transaction before wrote to, and what became of it."""
        self.topics.clear()
        self._note_failures()
        self.deliveries.clear()

    def took(self, records: int, size: int) -> None:
        """Note that so many records, with so many bytes of values, were given to the client."""
        self._backlog.took(records, size)

    def await_room(self) -> None:
        """Wait until no more is undelivered than may be, for some seconds at most."""
        started = now = time.monotonic()
        self._backlog.look(len(self.client), now)
        while not self._backlog.has_room and now - started < ROOM_SECONDS:
            self.poll(ROOM_POLL_SECONDS)
            self.check_alive()
            now = time.monotonic()
            self._backlog.look(len(self.client), now)
            if now - started >= ROOM_TELL_SECONDS and self._backlog.is_to_tell(now):
                log.warning("writing waits for the brokers: %s", self._backlog.describe(now))

    def flush(self, seconds: float) -> int:
        """Wait until every record is delivered or has failed; return how many are neither. Raise the first failure."""
        deadline = time.monotonic() + seconds
        while True:
            left = self._serve(self.client.flush, max(0.0, min(seconds, ALIVE_CHECK_SECONDS)))
            seconds = deadline - time.monotonic()
            if left == 0 or seconds <= 0:
                return left
            self.check_alive()

    def deliver(self, seconds: float) -> None:
        """Flush for a checkpoint; raise CheckpointDeclined, with what makes it slow, where the time is too short."""
        if self.flush(seconds):
            now = time.monotonic()
            self._backlog.look(len(self.client), now)
            self._backlog.late()
            raise CheckpointDeclined(
                f"what was written was not delivered within {seconds:.0f} s, and still may be: "
                f"{self._backlog.describe(now)}"
            )
        self._backlog.in_time()

    def poll(self, seconds: float) -> None:
        """Take the reports that have arrived; raise the first failure."""
        self._serve(self.client.poll, seconds)

    def raise_reported(self, seconds: float) -> None:
        """Wait for the report of a failed record and raise it. A poll may return for less: librdkafka's log lines."""
        deadline = time.monotonic() + seconds
        while True:
            self.poll(max(0.0, min(seconds, REPORT_POLL_SECONDS)))
            if time.monotonic() >= deadline:
                return

    def send_positions(self, offsets: list[TopicPartition], group: object, seconds: float) -> None:
        """Put the positions of a group into the open transaction; raise librdkafka's error if that fails in time.

        librdkafka may wait for the group's coordinator without end, whatever time it is given, once that broker has
        left the cluster (librdkafka issues 5456 and 5511): Unavailable then, and this producer is good for nothing.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                return call_within(
                    POSITIONS_SECONDS + POSITIONS_GRACE_SECONDS,
                    lambda: self.client.send_offsets_to_transaction(offsets, group, POSITIONS_SECONDS),
                )
            except Overdue:
                raise Unavailable(
                    f"the Kafka client has not put the positions into the transaction within {POSITIONS_SECONDS:.0f} s "
                    "and may never: has a broker left that was the coordinator of the consumer group? Starting again "
                    "with new clients"
                ) from None
            except KafkaException as error:
                cause = error_of(error)
                if not cause.retriable() or cause.txn_requires_abort() or time.monotonic() > deadline:
                    raise
            self.poll(0)
            self.check_alive()

    def check_alive(self) -> None:
        """Raise what this producer waits for in vain: all brokers, for ever, or a topic. For everyone who waits."""
        self._health.check(self.client)
        self._doubt()

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        """Call what calls back. confluent-kafka raises a fatal error from it, and may garble it with the calls back."""
        try:
            left = call(seconds)
        except KafkaException as error:
            raise failure("producing", error_of(error)) from error
        except SystemError as error:
            raise self._fatal_error(error.__cause__) from error
        self._raise_failure()
        return left

    def _fatal_error(self, cause: BaseException | None) -> TwoPhaseCommitError:
        """Return what stopped the producer. It says so again whenever asked for a transaction; this one is spoilt."""
        if isinstance(cause, KafkaException):
            return failure("producing", error_of(cause))
        try:
            self.client.abort_transaction(ABORT_TIMEOUT_SECONDS)
        except KafkaException as error:
            return failure("producing", error_of(error))
        return Unavailable("producing failed, and the Kafka client did not say why")

    def _raise_failure(self) -> None:
        """Raise what kept the first record from being delivered, if any was."""
        self._note_failures()
        error = self.deliveries.failure()
        if error is not None:
            raise (self._spoilt_by() if self.deliveries.only_purged else None) or error

    def _spoilt_by(self) -> TwoPhaseCommitError | None:
        """Return what made the producer drop the records of its transaction: it says so to whoever wants another."""
        try:
            self.client.begin_transaction()
        except KafkaException as error:
            cause = error_of(error)
            if cause.txn_requires_abort() or cause.fatal():
                return failure(f"producing to {', '.join(sorted(self.topics))}", cause)
        return None

    def await_broker(self, topic: str | None) -> None:
        """Return when a broker has answered under its own name. To be called before transactions are initialised.

        A question for the transaction coordinator that goes to a bootstrap server while librdkafka puts the brokers in
        the place of these is lost, and asked again after half a second; so it was for one new producer of three.
        """
        for _ in range(BROKER_QUESTIONS):
            if self._metadata(topic).orig_broker_id >= 0:
                return
            time.sleep(BROKER_PAUSE_SECONDS)

    def know(self, topic: str) -> None:
        """Fetch the metadata of a topic that exists."""
        if topic not in self._known:
            self._metadata(topic)

    def _metadata(self, topic: str | None) -> Any:
        try:
            found = self.client.list_topics(topic, timeout=METADATA_TIMEOUT_SECONDS)
        except KafkaException as error:
            asked = "the cluster" if topic is None else f"topic {topic}"
            raise failure(f"asking for the metadata of {asked}", error_of(error)) from error
        if topic is not None:
            self._known.add(topic)
        return found
