"""Records that go wrong, into a topic: as they were read, with Kafka Connect's headers behind their own.

All of those are text in UTF-8, numbers in decimal. `stage` is one of Connect's, `class.name` says which operator or
serde it was, and `exception.class.name` which exception. Connect's `task.id` is left out: it differs after a rescale.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from traceback import format_exception

from twopc.column_rows import NO_TIMESTAMP
from twopc.error_policy import ErrorPolicy, checked_most
from twopc.errors import ConfigurationError
from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
from twopc.kafka.source import BYTES
from twopc.protocol.ids import checked_name
from twopc.record import Batch, Headers, RecordError, Row
from twopc.sink import Sink

PREFIX = "__connect.errors."

TEXT_MAX = 16_000
"""How many characters of a message or a stack trace a dead letter has: they must not make it too large to write."""


@dataclass(frozen=True, slots=True)
class DeadLetter(ErrorPolicy):
    """The record is written to a topic as it was read, key, value, headers and timestamp, with `__connect.errors.*`.

    It is written in the transaction of all other output, so it is there once, as they are: the sink of dead letters is
    one of the job's own, `dead-letters-<topic>`, on the cluster of the job's first exactly-once KafkaSink, with its
    settings. A record that fails on several of its ways through the job is a dead letter once for each.

    Where more than `most` of the last 10,000 records of a subtask went wrong (0.01: more than 100), the job ends. A
    record that is several dead letters counts once.
    """

    topic: str
    most: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise ConfigurationError(f"DeadLetter needs the name of a topic, not {self.topic!r}")
        checked_name("the topic of dead letters", self.topic)
        checked_most(self)

    @property
    def sink_id(self) -> str:
        return f"dead-letters-{self.topic}"

    def dead_letter_sink(self, sinks: Iterable[Sink]) -> KafkaSink:
        own = [each for each in sinks if isinstance(each, KafkaSink)]
        own.sort(key=lambda sink: sink.delivery_guarantee is not DeliveryGuarantee.EXACTLY_ONCE)
        sink = copy(own[0]) if own else KafkaSink(self.topic)
        sink.topic, sink.key, sink.value, sink.partitioner = self.topic, BYTES, BYTES, None
        return sink

    def dead_letter(self, job: str, error: RecordError) -> Batch:
        row = error.row
        kind, stamp = row.timestamp()
        # The Kafka client can't write 0, and takes it for now.
        timestamp = stamp if kind and stamp not in (0, NO_TIMESTAMP) else None
        return Batch([row], [row.value()], [row.key()], [timestamp], [[*_own_headers(row), *error_headers(job, error)]])


def error_headers(job: str, error: RecordError) -> list[tuple[str, bytes]]:
    """Return the headers that say what went wrong with a record."""
    row, cause = error.row, error.exception
    texts = {
        "topic": row.topic() or "",
        "partition": str(row.partition()),
        "offset": str(row.offset()),
        "connector.name": job,
        "stage": error.stage,
        "class.name": error.doing,
        "exception.class.name": _qualified(type(cause)),
        "exception.message": str(cause)[:TEXT_MAX],
        "exception.stacktrace": "".join(format_exception(cause))[-TEXT_MAX:],
    }
    return [(PREFIX + name, text.encode(errors="backslashreplace")) for name, text in texts.items()]


def _own_headers(row: Row) -> Headers:
    try:
        return list(row.headers() or ())
    except (SystemError, ValueError):
        # Names that are not UTF-8, which the client can neither hand over nor write.
        return ()


def _qualified(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
