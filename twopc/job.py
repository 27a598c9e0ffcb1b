"""A job as the user writes it: sources, operators, sinks. Building one runs nothing and opens nothing."""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from twopc.config import RunSettings
from twopc.duration import duration_ms
from twopc.error_policy import ErrorPolicy, checked_policy
from twopc.errors import ConfigurationError
from twopc.graph import FAIL, GraphBuilder, JobDefinition, Merge, What
from twopc.operators.records import print_record
from twopc.operators.steps import (
    AssignTimestamps,
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    Map,
    MapAsync,
    MapAsyncRecords,
    MapBatches,
    MapRecords,
    Peek,
    PeekRecords,
    Print,
    Process,
    StatefulMap,
)
from twopc.port import Port
from twopc.processor import Processor
from twopc.record import Record
from twopc.serde import Json, Serde
from twopc.sink import Sink
from twopc.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from twopc import events
    from twopc.driver.run import RunReport


class Job(GraphBuilder):
    """A named job: `job.source(...)`, operators, `.sink(...)`; then `twopc run` or `job.run(...)`.

    The name is the job's identity: checkpoints are found again by it, and it is the consumer group and the prefix of
    the transactional ids unless sources and sinks are told otherwise. `properties` say how these get at their brokers
    (security.protocol, sasl.username, ssl.ca.location, ... of librdkafka), where they say nothing themselves.

    `on_error` is what becomes of a record that can't be decoded or encoded, or on which a function raises: `Fail()`
    ends the job, `Skip()` leaves it out, `DeadLetter('topic')` writes it to a topic. A source may have its own.
    """

    def __init__(self, name: str, *, properties: Mapping[str, Any] | None = None, on_error: ErrorPolicy = FAIL) -> None:
        super().__init__(name)
        self.on_error = checked_policy(name, on_error)
        self.properties = dict(properties or {})

    @classmethod
    def of(cls, definition: JobDefinition) -> Job:
        """Return a job that is complete already."""
        job = cls(definition.name)
        job.operators = definition.operators
        return job

    def source(
        self,
        source: Source,
        *,
        timestamp: Callable[[Any], int | None] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Stream:
        """Say where records come from; return the stream to put operators on. A job may have several.

        The event time of a record is its own timestamp, or `timestamp(value)`: Unix milliseconds, None for none.
        `on_error` is what becomes of its records that go wrong, wherever in the job that is; the job's unless given.
        """
        if not isinstance(source, Source):
            raise ConfigurationError(f"job {self.name!r}: {source!r} is not a source such as KafkaSource('topic')")
        policy = self.on_error if on_error is None else on_error
        stream = Stream(self, self.add(source.with_access(self.properties), (), name, policy))
        return stream if timestamp is None else stream._then(AssignTimestamps(timestamp), None)

    def definition(self) -> JobDefinition:
        """Return the complete job, with its sinks of dead letters; raise ConfigurationError for what is missing."""
        definition = super().definition()
        return definition.with_access(self.properties) if self.properties else definition

    def describe(self) -> str:
        """Return the job as text: its operators with their ids, and where their records come from."""
        return self.definition().describe()

    def run(
        self,
        *,
        on_event: Callable[[events.Event], None] | None = None,
        stop: threading.Event | None = None,
        **settings: Any,
    ) -> RunReport:
        """Run the job until its end or until it is stopped: by SIGTERM, Ctrl-C, or `stop` being set.

        The keywords are the fields of `RunSettings`; durations may be written as `checkpoint_interval="500ms"`. What
        is not given comes from the environment (`TWOPC_PARALLELISM`, ...), else it has its default. `host="inline"`
        runs the functions in the calling thread, for breakpoints and notebooks. With `host="process"` each worker loads
        the file that the job is defined in: what that file runs stands under `if __name__ == "__main__":`.

        `on_event` is called with every event of the job, on a thread of its own. An event is a value of one of the
        classes of `twopc.events`: match it by class (`from twopc import events`). What `on_event` raises is logged.
        """
        from twopc.driver.run import run
        from twopc.loader.job_file import job_file_of
        from twopc.loader.job_loader import refuse_while_loading

        refuse_while_loading()
        resolved = RunSettings.resolve(**settings)
        job_file = job_file_of(self) if resolved.host == "process" else None
        return run(self.definition(), resolved, on_event=on_event, job_file=job_file, stop=stop)


class Stream:
    """The records at one place of a job. Every operator returns the next stream; a stream may go on in several ways.

    Functions get one argument, the value of a record, or with `*_records` the whole `Record`. They run in the
    subtasks, on one record at a time and in the order of each partition, but a whole batch through one operator before
    the next: so they return new values and leave those that they are given as they are. One that raises stops the job
    with an error that names the record, unless the policy of its source (`on_error`) says otherwise.

    `name` is an operator's id in its job, and what is stored for it belongs to that name: a job that was changed finds
    it again. Without one the id is the kind of the operator and which of its kind it is in the program: `map-2`.
    """

    def __init__(self, job: Job, at: str) -> None:
        self._job = job
        self._at = at

    def map(self, function: Callable[[Any], Any], *, name: str | None = None) -> Stream:
        """Replace each value by `function(value)`."""
        return self._then(Map(function), name)

    def filter(self, predicate: Callable[[Any], Any], *, name: str | None = None) -> Stream:
        """Keep the records for whose value `predicate(value)` is true."""
        return self._then(Filter(predicate), name)

    def flat_map(self, function: Callable[[Any], Iterable[Any]], *, name: str | None = None) -> Stream:
        """Replace each record by one for each value of `function(value)`, with its key, timestamp and headers."""
        return self._then(FlatMap(function), name)

    def map_records(self, function: Callable[[Record], Record], *, name: str | None = None) -> Stream:
        """Replace each record by `function(record)`, made with `record.replace(key=..., value=...)`."""
        return self._then(MapRecords(function), name)

    def filter_records(self, predicate: Callable[[Record], Any], *, name: str | None = None) -> Stream:
        """Keep the records for which `predicate(record)` is true."""
        return self._then(FilterRecords(predicate), name)

    def flat_map_records(self, function: Callable[[Record], Iterable[Record]], *, name: str | None = None) -> Stream:
        """Replace each record by those of `function(record)`: none, one or many."""
        return self._then(FlatMapRecords(function), name)

    def peek(self, function: Callable[[Any], Any], *, name: str | None = None) -> Stream:
        """Call `function(value)` for each record, to look at it or to count it; the record goes on as it is.

        It is called again for what is processed again: after a crash, and by `twopc verify`.
        """
        return self._then(Peek(function), name)

    def peek_records(self, function: Callable[[Record], Any], *, name: str | None = None) -> Stream:
        """Call `function(record)` for each record, as `peek` does with its value."""
        return self._then(PeekRecords(function), name)

    def print(self, label: str = "", *, name: str | None = None) -> Stream:
        """Write each record to the standard output of its subtask, as a line: label, place, key and value."""
        return self._then(Print(partial(print_record, label), label), name)

    def map_async(
        self,
        function: Callable[[Any], Awaitable[Any]],
        *,
        concurrency: int = 16,
        timeout: str | timedelta | None = None,
        retries: int = 0,
        name: str | None = None,
    ) -> Stream:
        """Replace each value by `await function(value)`, for functions that wait for another system.

        Up to `concurrency` calls of a subtask are in flight at a time; the results go on in the order of the records. A
        call that takes longer than `timeout`, a duration such as "5s", is cancelled and has failed. One that has failed
        is made again up to `retries` times, after growing pauses; then the record has failed, as in `map`.

        A checkpoint waits for what is in flight. Calls are made again after a crash and by `twopc verify`: what they
        change elsewhere is changed at least once.

        The function may be an object with `async def __call__(self, value)`. If it has `async def open(self)`, that is
        awaited before the first call, and `async def close(self)` at the end of the attempt; each subtask has a copy of
        such an object (`copy.copy`). A client that all calls share is opened there.
        """
        return self._then(MapAsync(function, concurrency, _timeout_ms(timeout), retries), name)

    def map_async_records(
        self,
        function: Callable[[Record], Awaitable[Record]],
        *,
        concurrency: int = 16,
        timeout: str | timedelta | None = None,
        retries: int = 0,
        name: str | None = None,
    ) -> Stream:
        """Replace each record by `await function(record)`, as `map_async` does with values."""
        return self._then(MapAsyncRecords(function, concurrency, _timeout_ms(timeout), retries), name)

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        *,
        key_type: pa.DataType | None = None,
        value_type: pa.DataType | None = None,
        name: str | None = None,
    ) -> Stream:
        """Replace whole batches by `function(batch)`, for code that is vectorised itself; both are Arrow's.

        The batch has the columns `key`, `value`, `timestamp` and `row`; what is returned needs `value`, and `row` too
        if it has fewer or more records: it says which input record each comes from, and must not decrease. The types
        of keys and values are taken from each batch unless given: JSON objects become structs of the fields that occur.
        How many records a batch has is not to be relied on.
        """
        return self._then(MapBatches(function, key_type, value_type), name)

    def stateful_map(
        self, function: Callable[[Any, Any], tuple[Any, Any]], *, name: str, state: Serde | None = None
    ) -> Stream:
        """Replace each value by the second of `new_state, output = function(state, value)`.

        There is one state for each key, over all topics that come here, so each of them must be written with this key,
        by the same partitioner, and have the same number of partitions, or the start is refused; an operator before it
        that may set the key is refused too. Records of one topic come in the order of their partition, those of
        different topics in any.

        The state is None at first, kept in checkpoints under `name`, encoded by the serde `state` (JSON unless said
        otherwise), whose form of it the function sees: a tuple comes back from JSON as a list. A new state of None
        forgets the key. A key is bytes, text, or anything that JSON can encode: 1, "1" and true are three keys, and two
        objects with the same fields are one.
        """
        return self._then(StatefulMap(function, name, Json() if state is None else state), name)

    def process(self, processor: Processor, *, name: str) -> Stream:
        """Replace each record by those that `processor.process(record, context)` returns or yields.

        The processor declares states by key, which are kept in checkpoints under `name`; may set timers by event time;
        and sees the records of one partition number in order. Where keys may come from is as with `stateful_map`, which
        is the short form, and faster.
        """
        return self._then(Process(processor, name), name)

    def side_output(self, name: str) -> Stream:
        """Return the stream of what the processor before it puts out with `context.output(name, record)`."""
        made_by = next((each.what for each in self._job.operators if each.id == self._at), None)
        if not isinstance(made_by, Process):
            raise ConfigurationError(
                f"job {self._job.name!r}: only what process makes has side outputs: process(...).side_output(...)"
            )
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name):
            raise ConfigurationError(f"the name of a side output is letters, digits, '_' and '-', not {name!r}")
        return Stream(self._job, str(Port(self._at, name)))

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """Return one stream of the records of this one and of the others; what each holds keeps its order."""
        if not others:
            raise ConfigurationError(f"job {self._job.name!r}: merge needs another stream, as in web.merge(app)")
        for other in others:
            if not isinstance(other, Stream) or other._job is not self._job:
                raise ConfigurationError(
                    f"job {self._job.name!r}: {other!r} is not a stream of this job: it can't merge"
                )
        inputs = (self._at, *(other._at for other in others))
        return Stream(self._job, self._job.add(Merge(), inputs, name))

    def sink(self, sink: Sink, *, name: str | None = None) -> Job:
        """Say where the records of this stream go; return the job."""
        if not isinstance(sink, Sink):
            raise ConfigurationError(f"job {self._job.name!r}: {sink!r} is not a sink such as KafkaSink('topic')")
        self._job.add(sink.with_access(self._job.properties), (self._at,), name)
        return self._job

    def _then(self, what: What, name: str | None) -> Stream:
        return Stream(self._job, self._job.add(what, (self._at,), name))


def _timeout_ms(written: str | timedelta | None) -> int | None:
    try:
        return None if written is None else duration_ms(written)
    except ValueError as error:
        raise ConfigurationError(f"timeout of map_async: {error}") from error
