"""Writes one Kafka transaction after the other and pre-commits each; somebody else, in another process, ends them.

For whoever has no checkpoint to tell a writer of: Spark's tasks, which end with their pre-commit.

Invariants:

- A transactional id belongs to one process for good: it is made of a number that no other process of the run has, and
  nobody else ever initialises it while the run lives. So a task that was taken for dead and wakes aborts nothing.
- A producer begins its next transaction only after the broker says that the one before was committed. In any other
  case it is let go, and a new one gets a new id: whoever decided otherwise ends what it left.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from twopc.errors import CheckpointDeclined, Unavailable
from twopc.kafka.clients.client_config import producer_config, transactional_config
from twopc.kafka.clients.failures import error_of, failure
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.output.backlog import Backlog
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.output.tracked_producer import TrackedProducer
from twopc.kafka.topics.output_topics import BrokerTopics
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.naming import SlotName, transactional_id
from twopc.kafka.transactions.pre_commit import prepared_transaction, require_open
from twopc.kafka.transactions.resume import gather
from twopc.kafka.transactions.transaction_verdict import AlreadyCommitted, judge
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.record import Batch, RecordsRefused
from twopc.serde import BYTES

log = logging.getLogger(__name__)

INIT_SECONDS = 30.0
DESCRIBE_SECONDS = 10.0
COMMIT_SECONDS = 10.0
ABORT_SECONDS = 10.0
NUMBER_LIMIT = 1_000_000_000
"""A number in a transactional id has nine digits."""


@dataclass(frozen=True, slots=True)
class BatchWriterConfig:
    """The settings of one run's writers. `timeout_ms` is their transactions'."""

    prefix: str
    run: AttemptId
    bootstrap_servers: str
    timeout_ms: int
    flush_seconds: float
    properties: Mapping[str, Any] = field(repr=False)

    def transactional_id(self, number: int) -> str:
        """Return the id of the producer with this number, which nobody else in the run has."""
        high, low = divmod(number, NUMBER_LIMIT)
        return transactional_id(self.prefix, SlotName(self.run, SubtaskIndex(low), high))

    def producer(self, name: str) -> dict[str, Any]:
        """Return librdkafka's settings for the producer with this id."""
        return transactional_config(producer_config(self.bootstrap_servers, self.properties), name, self.timeout_ms)


class BatchWriter:
    """Used by one thread. In turn: `begin`, `write`..., `pre_commit`, or `give_up`; then `begin` again."""

    def __init__(self, config: BatchWriterConfig) -> None:
        self.config = config
        self._client = LeaderClient(config.bootstrap_servers, config.properties)
        self._identity = TopicIdentity(self._client)
        self._topics = BrokerTopics(self._client, self._identity, config.properties)
        self._backlog = Backlog(config.flush_seconds)
        self._outputs: dict[str, TopicOutput] = {}
        self._name = ""
        self._producer: TrackedProducer | None = None
        self._prepared: PreparedTransaction | None = None

    def begin(self, number: int) -> None:
        """Begin a transaction; `number` is nobody else's in this run, for the id of a producer that must be made."""
        if self._producer is not None and not self._is_committed():
            self._producer = None
        self._prepared = None
        if self._producer is None:
            self._name = self.config.transactional_id(number)
            self._producer = self._make(self._name)
        self._producer.reset()
        try:
            self._producer.client.begin_transaction()
        except KafkaException as error:
            raise failure(f"beginning transaction {self._name}", error_of(error)) from error

    def write(self, topic: str, batch: Batch) -> None:
        """Write to a topic that exists; raise UserCodeError that names a record that can't be written."""
        assert self._producer is not None, "no transaction was begun"
        if topic not in self._outputs:
            self._outputs[topic] = TopicOutput(topic, None, BYTES, BYTES, self._topics)
        try:
            self._outputs[topic].write(self._producer, batch)
        except RecordsRefused as error:
            raise error.errors[0].named() from error

    def pre_commit(self, batch: int, partition: int) -> Committable:
        """Make what was written durable, and able to be committed by another process."""
        assert self._producer is not None, "no transaction was begun"
        at, index = CheckpointId(batch), SubtaskIndex(partition)
        try:
            self._producer.deliver(self.config.flush_seconds)
        except CheckpointDeclined as error:
            raise Unavailable(str(error)) from error
        self._identity.check(at)
        found = call_with_retry(lambda: self._client.describe_transaction(self._name), DESCRIBE_SECONDS)
        described = require_open(found, self._name, self.config.timeout_ms)
        written_to = self._producer.topics
        self._prepared = prepared_transaction(self._name, described, written_to, self._topics.ids, at, index)
        return self._prepared.to_committable()

    def give_up(self) -> None:
        """Abort what was begun and is not pre-committed, as far as that can be done now."""
        # What is pre-committed stays: it is of another task, and may be decided.
        if self._producer is None or self._prepared is not None:
            return
        producer, self._producer = self._producer, None
        try:
            producer.client.abort_transaction(ABORT_SECONDS)
        except KafkaException as error:
            log.info("transaction %s is left open: %s", self._name, error_of(error))

    def close(self) -> None:
        """Let go of everything; a pre-committed transaction stays as it is."""
        self._producer = None
        self._client.close()

    def _is_committed(self) -> bool:
        """Whether the producer's last transaction was committed, and it knows that now."""
        assert self._producer is not None
        if self._prepared is None:
            return False
        prepared = self._prepared
        evidence = call_with_retry(lambda: gather(self._client, prepared, confirmed=False), DESCRIBE_SECONDS)
        if not isinstance(judge(prepared.recorded, evidence), AlreadyCommitted):
            return False
        try:
            # The broker says yes to who commits what is committed; so librdkafka learns of it.
            self._producer.client.commit_transaction(COMMIT_SECONDS)
        except KafkaException as error:
            log.info("the producer of %s is given up: %s", self._name, error_of(error))
            return False
        return True

    def _make(self, name: str) -> TrackedProducer:
        producer = TrackedProducer(self.config.producer(name), self._identity.doubt, self._backlog)
        producer.await_broker(None)
        try:
            producer.client.init_transactions(INIT_SECONDS)
        except KafkaException as error:
            raise failure(f"initialising transactional id {name}", error_of(error)) from error
        return producer
