"""Records that go wrong, into a topic: as they were read, with Kafka Connect's headers behind their own.

All of those are text in UTF-8, numbers in decimal. `stage` is one of Connect's, `class.name` says which operator or
serde it was, and `exception.class.name` which exception. Connect's `task.id` is left out: it differs after a rescale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from traceback import format_exception

from twopc.column import message_of
from twopc.column_rows import NO_TIMESTAMP
from twopc.error_policy import ErrorPolicy, checked_most
from twopc.errors import ConfigurationError
from twopc.kafka.letter import TIMESTAMP, Letter
from twopc.kafka.output.topic_output import RecordProducer, TopicOutput
from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
from twopc.kafka.topics.dead_letter_topic import DeadLetterTopic
from twopc.kafka.topics.new_topic import NewTopic, NewTopics, checked_new_topic
from twopc.kafka.topics.output_topics import OutputTopics
from twopc.kafka.topics.topic_limits import largest_record
from twopc.kafka.topics.topic_name import checked_topic
from twopc.record import Batch, RecordError, RecordsRefused, Row
from twopc.sink import Sink

TEXT_MAX = 16_000
"""How many characters of a message or a stack trace a dead letter has: they must not make it too large to write."""


@dataclass(frozen=True, slots=True)
class DeadLetter(ErrorPolicy):
    """The record is written to a topic as it was read, key, value, headers and timestamp, with `__connect.errors.*`.

    It is written in the transaction of all other output, so it is there once, as they are: the sink of dead letters is
    one of the job's own, `dead-letters-<topic>`, on the cluster of the job's first exactly-once KafkaSink, with its
    producer. A record that fails on several of its ways through the job is a dead letter once for each. What is too
    long for the producer is shortened, and the header `__connect.errors.shortened` says so; a timestamp that the topic
    refuses is in the header `__connect.errors.timestamp`.

    `create` is how the topic is made at the start, if it isn't there: `NewTopic(partitions=4)`. Without it the start is
    refused then, and so is a topic that would not take every dead letter: one that is compacted, or takes only smaller
    records than the producer.

    Where more than `most` of the last 10,000 records of a subtask went wrong (0.01: more than 100), the job ends. A
    record that is several dead letters counts once.
    """

    topic: str
    create: NewTopic | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise ConfigurationError(f"DeadLetter needs the name of a topic, not {self.topic!r}")
        checked_topic("DeadLetter", self.topic)
        checked_new_topic(self.create, self.topic, "DeadLetter")
        checked_most(self)

    @property
    def sink_id(self) -> str:
        return f"dead-letters-{self.topic}"

    def check_beside(self, other: ErrorPolicy) -> None:
        if isinstance(other, DeadLetter) and other.create != self.create:
            raise ConfigurationError(
                f"two policies write dead letters to topic {self.topic!r}, and differ in how it is made, create="
                f"{other.create} and {self.create}: say the same in both"
            )

    def dead_letter_sink(self, sinks: Iterable[Sink]) -> KafkaSink:
        own = [each for each in sinks if isinstance(each, KafkaSink)]
        own.sort(key=lambda sink: sink.delivery_guarantee is not DeliveryGuarantee.EXACTLY_ONCE)
        return DeadLetterSink(self.topic, self.create, own[0] if own else KafkaSink(self.topic))

    def dead_letter(self, job: str, error: RecordError, sink: Sink) -> Batch:
        assert isinstance(sink, KafkaSink), "dead letters go to a topic"
        row = error.row
        kind, stamp = row.timestamp()
        # The Kafka client can't write 0, and takes it for now.
        timestamp = stamp if kind and stamp not in (0, NO_TIMESTAMP) else None
        whole = Letter(row.key(), row.value(), _own_headers(row), error_texts(job, error))
        letter = whole.without_illegal_headers().fitted(largest_record(sink.properties))
        return Batch([row], [letter.value], [letter.key], [timestamp], [letter.all_headers])


class DeadLetterSink(KafkaSink):
    """Writes dead letters as they are, with the producer of another sink; of its settings, with no others."""

    def __init__(self, topic: str, create: NewTopic | None, beside: KafkaSink) -> None:
        super().__init__(
            topic,
            create=create,
            delivery_guarantee=beside.delivery_guarantee,
            transactional_id_prefix=beside.transactional_id_prefix,
            bootstrap_servers=beside.bootstrap_servers,
        )
        self.properties = beside.properties

    def output(self, topics: OutputTopics) -> TopicOutput:
        return LetterOutput(self.topic, self.partitioner, self.key, self.value, topics)

    @property
    def new_topics(self) -> NewTopics:
        return {topic: DeadLetterTopic(self.create, largest_record(self.properties)) for topic in self.outputs}


class LetterOutput(TopicOutput):
    """Writes letters, one at a time; one whose time the topic refuses, without it: a header says what it was."""

    def write(self, producer: RecordProducer, batch: Batch) -> int:
        try:
            return super().write(producer, batch)
        except RecordsRefused:
            (stamp,), (headers,) = batch.timestamps, batch.headers
            if stamp is None:
                raise
            written = [*(headers or ()), (TIMESTAMP, b"%d" % stamp)]
            return super().write(producer, Batch(batch.rows, batch.values, batch.keys, [None], [written]))


def error_texts(job: str, error: RecordError) -> dict[str, bytes]:
    """Return what went wrong with a record, by the names of Connect's headers without their prefix."""
    row, cause = error.row, error.exception
    texts = {
        "topic": row.topic() or "",
        "partition": str(row.partition()),
        "offset": str(row.offset()),
        "connector.name": job,
        "stage": error.stage,
        "class.name": error.doing,
        "exception.class.name": _qualified(type(cause)),
        "exception.message": message_of(cause)[:TEXT_MAX],
        "exception.stacktrace": "".join(format_exception(cause))[-TEXT_MAX:],
    }
    return {name: text.encode(errors="backslashreplace") for name, text in texts.items()}


def _own_headers(row: Row) -> tuple[tuple[str, bytes | None], ...]:
    try:
        return tuple(row.headers() or ())
    except (SystemError, ValueError):
        # Names that are not UTF-8, which the client can neither hand over nor write.
        return ()


def _qualified(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
