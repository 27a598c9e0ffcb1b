"""Replays a job's input offline: its own graph and serdes, on batches, with state in memory.

What comes out is determined only as far as the job is: its functions must depend on nothing but the record and the
state. It doesn't depend on how the input is cut into batches, nor on which partitions or sources are read first: what
would is on no path (`twopc.verify.paths`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from twopc.clock import SystemClock
from twopc.column import coded, user_code_error
from twopc.config import MAX_TIME_AHEAD_MS
from twopc.errors import UserCodeError
from twopc.kafka.encoding import encoded, serialized
from twopc.kafka.output import TopicOf
from twopc.kafka.source import BYTES
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.operators import KeyedStateStore, SinkOutput
from twopc.operators.dataflow import Dataflow
from twopc.operators.time_bound import ahead_of
from twopc.packed_column import Column
from twopc.record import Batch, Record, RecordError, Row
from twopc.serde import Serde
from twopc.stand_ins import KeyOnly, PassedTime
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend
from twopc.verify.history import Expected, Headers, Place
from twopc.verify.paths import Paths


def as_sent(serde: Serde, column: Column, batch: Batch, doing: str) -> list[bytes | None]:
    """Encode as the sink and its client do: text that passes for bytes goes out as UTF-8, and nothing else does."""
    sent = serialized(serde, column, batch, doing)
    return coded(
        BYTES.serialize_all, [each.encode() if isinstance(each, str) else each for each in sent], batch.rows, doing
    )


class ReplayedRecord(NamedTuple):
    """One record that the job makes, at which of its sinks, and the topic that it goes to."""

    sink: str
    topic: str
    expected: Expected


class Replay:
    """Feed it the decoded input, each partition in its order; it says what has to be in the output, and where.

    It starts without state, or with what is in `store`. `numbers` are those of the partitions that can be drained.
    Records move stream time no further ahead of the clock of now than `max_time_ahead_ms`. Close it, by leaving its
    context.
    """

    def __init__(
        self,
        paths: Paths,
        store: KeyedStateStore | None = None,
        *,
        numbers: Collection[int] = (),
        max_time_ahead_ms: int = MAX_TIME_AHEAD_MS,
    ) -> None:
        self._policies = paths.error_policies
        store = KeyedState(MemoryBackend()) if store is None else store
        latest = ahead_of(SystemClock(), max_time_ahead_ms)
        self._flow = Dataflow(paths.nodes, store, self._refuse, numbers, latest=latest)
        self._sinks = paths.sinks
        self._partitions: dict[tuple[str | None, int | None], TopicPartition] = {}
        self._serdes: dict[str, TopicSerdes] = {}
        self._behind: Mapping[int, Place] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closing:
            closing.callback(self._flow.close)
            for serdes in self._serdes.values():
                closing.callback(serdes.close)

    def make(self, source: str, batch: Batch) -> Iterator[ReplayedRecord]:
        """Yield what the job makes of a batch of this source; raise UserCodeError where it fails."""
        if self._policies[source].goes_on:
            batch = batch.with_headers_read()
        yield from self._made(source, self._flow.process(source, batch))

    def drain(self, source: str, behind: Mapping[int, Place]) -> Iterator[ReplayedRecord]:
        """Yield what a drain makes once all of this source is fed; its place is this one of its partition number."""
        self._behind = behind
        yield from self._made(source, self._flow.drain({source}))

    def _made(self, source: str, outputs: Iterable[SinkOutput]) -> Iterator[ReplayedRecord]:
        for output in outputs:
            try:
                made = list(self._encoded(output.sink, output.batch))
            except UserCodeError:
                if not self._policies[source].goes_on:
                    raise
                made = list(self._without_bad(output.sink, output.batch))
            yield from made

    def write_back(self) -> None:
        """Bring the store up to what was fed."""
        self._flow.write_back()

    def _refuse(self, source: str, error: RecordError) -> Iterable[SinkOutput]:
        """A record that goes wrong makes nothing that is judged, where the job goes on behind it."""
        if not self._policies[source].goes_on:
            raise error.named()
        return ()

    def _without_bad(self, path: str, produced: Batch) -> Iterator[ReplayedRecord]:
        """Encode one record after the other, and leave out those that can't be."""
        for index in range(len(produced)):
            try:
                yield from list(self._encoded(path, produced.take([index])))
            except UserCodeError:
                continue

    def _encoded(self, path: str, produced: Batch) -> Iterator[ReplayedRecord]:
        node = self._sinks[path]
        operator, sink = node.operator, node.what
        topics = self._topics(sink.topic, produced)
        if operator not in self._serdes:
            self._serdes[operator] = TopicSerdes(sink.key, sink.value, writing=True)
        for pair, part in self._serdes[operator].runs(topics):
            batch = produced if len(part) == len(produced) else produced.take(part)
            columns = zip(topics[part.start : part.stop], batch.rows, *encoded(pair, batch, "", as_sent), strict=True)
            for topic, row, key, value, headers in columns:
                yield ReplayedRecord(
                    operator, topic, Expected(self._place(row), key, value, plain_headers(headers), path)
                )

    def _place(self, row: Row) -> Place:
        while isinstance(row, KeyOnly):
            row = row.place
        if isinstance(row, PassedTime):
            return self._behind[row.number]
        pair = (row.topic(), row.partition())
        partition = self._partitions.get(pair)
        if partition is None:
            partition = self._partitions[pair] = TopicPartition(pair[0] or "", pair[1] or 0)
        return Place(partition, row.offset() or 0)

    def _topics(self, topic: TopicOf, batch: Batch) -> list[str]:
        if isinstance(topic, str):
            return [topic] * len(batch)
        topics = []
        columns = zip(batch.rows, batch.keys, batch.values, batch.timestamps, batch.headers, strict=True)
        for row, key, value, stamp, headers in columns:
            place = row.topic() or "", row.partition() or 0, row.offset() or 0
            try:
                topics.append(topic(Record(key, value, stamp, headers, *place)))
            except Exception as error:
                raise user_code_error(row, "the sink's topic function", error) from error
        return topics


def plain_headers(headers: Any) -> Headers:
    """Return headers as the client hands them over, in the one form in which they are compared."""
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
