"""Replays a job's input offline: its own graph, functions and serdes, on batches, with state in memory.

What comes out is determined only as far as the job is: its functions must depend on nothing but the record and the
state. It doesn't depend on how the input is cut into batches, nor on which partitions are read first, nor on which
sources, but for those that meet by key (`twopc.verify.paths`): they are fed as a run reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple, Self

from twopc.clock import SystemClock
from twopc.config import MAX_TIME_AHEAD_MS
from twopc.error_policy import tolerant
from twopc.kafka.clients.delivery_errors import WrittenBatch
from twopc.kafka.output.record_taker import RecordTaker
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topics.output_topics import OutputTopics
from twopc.operators import KeyedStateStore, SinkOutput, Turn
from twopc.operators.dataflow import Dataflow
from twopc.operators.node import Node
from twopc.operators.time_bound import ahead_of
from twopc.protocol.record_errors import RecordErrorCount, RecordErrorCounter
from twopc.record import RecordError, RecordsRefused, Row
from twopc.stand_ins import KeyOnly, PassedTime
from twopc.state.keyed import KeyedState
from twopc.state.memory import MemoryBackend
from twopc.verify.found_topics import FoundTopics
from twopc.verify.history import Expected, Headers
from twopc.verify.paths import Paths
from twopc.verify.plain import plainly


class ReplayedRecord(NamedTuple):
    """One record that the job makes, at which of its sinks, and the topic that it goes to."""

    sink: str
    topic: str
    expected: Expected


class Replay:
    """Feed it the decoded input, each partition in its order; it says what has to be in the output, and where.

    It starts without state, or with what is in `store`. Without, windows and tables are those of `twopc.verify.plain`;
    what a run has stored its own operators read. What `topics` don't take is a record that goes wrong, as in a
    run. `numbers` are those of the partitions that can be drained. Records move stream time no further ahead of the
    clock of now than `max_time_ahead_ms`. Close it, by leaving its context.
    """

    def __init__(
        self,
        paths: Paths,
        store: KeyedStateStore | None = None,
        *,
        topics: OutputTopics | None = None,
        numbers: Collection[int] = (),
        max_time_ahead_ms: int = MAX_TIME_AHEAD_MS,
    ) -> None:
        self._policies = paths.error_policies
        self._tolerant = tolerant(paths.error_policies)
        nodes: Sequence[Node] = paths.nodes
        if store is None:
            nodes = [replace(node, operation=plainly(node.operation)) for node in paths.nodes]
            store = KeyedState(MemoryBackend())
        latest = ahead_of(SystemClock(), max_time_ahead_ms)
        self._flow = Dataflow(nodes, store, self._refuse, numbers, latest=latest)
        self._sinks = paths.sinks
        self._topics = FoundTopics({}, {}) if topics is None else topics
        self._outputs: dict[str, TopicOutput] = {}
        self._counter = RecordErrorCounter()
        self._partitions: dict[tuple[str | None, int | None], TopicPartition] = {}
        self._behind: Mapping[int, Place] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closing:
            closing.callback(self._flow.close)
            for output in self._outputs.values():
                closing.callback(output.close)

    @property
    def record_errors(self) -> tuple[RecordErrorCount, ...]:
        """How often records went wrong, by source and operator, where the job goes on behind them."""
        return self._counter.counts()

    @property
    def takes_several(self) -> bool:
        """Whether the records of several sources may come in one turn."""
        return self._flow.takes_several

    def make(self, turn: Turn) -> Iterator[ReplayedRecord]:
        """Yield what the job makes of these records; raise UserCodeError where it fails."""
        self._behind = {}
        self._flow.put(turn.with_headers_read(self._tolerant))
        while self._flow.waits:
            yield from self._made(self._flow.advance()[1])

    def drain(self, sources: Sequence[str], behind: Mapping[int, Place]) -> Iterator[ReplayedRecord]:
        """Yield what a drain makes once all of these is fed; its place is this one of its partition number."""
        self._behind = behind
        yield from self._made(self._flow.drain(sources))

    def _made(self, outputs: Iterable[SinkOutput]) -> Iterator[ReplayedRecord]:
        for output in outputs:
            taken = _Taken()
            try:
                self._output(output.sink).write(taken, output.batch)
            except RecordsRefused as refused:
                for error in refused.errors:
                    self._flow.refuse(error)
            operator = self._sinks[output.sink].operator
            for row, topic, key, value, headers in taken.records:
                yield ReplayedRecord(operator, topic, Expected(self._place(row), key, value, headers, output.sink))

    def write_back(self) -> None:
        """Bring the store up to what was fed."""
        self._flow.write_back()

    def _output(self, path: str) -> TopicOutput:
        node = self._sinks[path]
        if node.operator not in self._outputs:
            self._outputs[node.operator] = node.operation.output(self._topics)
        return self._outputs[node.operator]

    def _refuse(self, source: str, error: RecordError) -> Iterable[SinkOutput]:
        """A record that goes wrong makes nothing that is judged, where the job goes on behind it."""
        policy = self._policies[source]
        if not policy.goes_on:
            raise error.named()
        if policy.sink_id is None:
            self._counter.add(source, error.doing, skipped=1)
        else:
            self._counter.add(source, error.doing, dead_letters=1)
        return ()

    def _place(self, row: Row) -> Place:
        while isinstance(row, KeyOnly):
            row = row.place
        if isinstance(row, PassedTime) and row.number in self._behind:
            return self._behind[row.number]
        if isinstance(row, PassedTime):
            assert self._flow.mark is not None, "time passes at a drain, or at a mark"
            row = self._flow.mark
        pair = (row.topic(), row.partition())
        partition = self._partitions.get(pair)
        if partition is None:
            partition = self._partitions[pair] = TopicPartition(pair[0] or "", pair[1] or 0)
        return Place(partition, row.offset() or 0)


class _Taken(RecordTaker):
    """The records that an output writes, each with the row that it is made of."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: Iterator[Row] = iter(())
        self.records: list[tuple[Row, str, bytes | None, bytes | None, Headers]] = []

    def written(self, written: WrittenBatch) -> None:
        """Records of these rows follow, one after the other."""
        self._rows = iter(written.rows)

    def produce(self, topic: str, value: Any, key: Any, *rest: Any) -> None:
        self._row = next(self._rows)
        super().produce(topic, value, key, *rest)

    def take(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers, partition: int, timestamp: int
    ) -> None:
        self.records.append((self._row, topic, key, value, headers))


def plain_headers(headers: Any) -> Headers:
    """Return headers as the client hands them over, in the one form in which they are compared."""
    if not headers:
        return ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)
