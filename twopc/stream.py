"""The stream of records at one place of a job: the operators that a user puts there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.graph import Merge, Operation
from twopc.graph.join_name import join_name
from twopc.operators import (
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    KeepBroadcast,
    KeepTable,
    KeyBy,
    KeyByRecords,
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
    StatefulMapRecords,
)
from twopc.operators.how import How, HowBoth
from twopc.operators.keyed_records import StatefulFunction
from twopc.operators.records import print_record
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.window_step import WindowAggregate
from twopc.port import Port
from twopc.processor import Processor
from twopc.record import Record
from twopc.repartition import Repartition, add_key_by, own_name
from twopc.serde import Json, Serde
from twopc.sink import Sink
from twopc.table import Table, checked_table
from twopc.windowed import WindowedStream
from twopc.windows import Windows, checked_ms, positive_ms

if TYPE_CHECKING:
    import pyarrow as pa

    from twopc.job import Job


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

    def map_records(
        self, function: Callable[[Record], Record], *, keeps_key: bool = False, name: str | None = None
    ) -> Stream:
        """Replace each record by `function(record)`, made with `record.replace(key=..., value=...)`.

        `keeps_key` says that the function leaves the key as it is, so that state by key may follow. It is checked: a
        record with another key goes wrong.
        """
        return self._then(MapRecords(function, keeps_key), name)

    def filter_records(self, predicate: Callable[[Record], Any], *, name: str | None = None) -> Stream:
        """Keep the records for which `predicate(record)` is true."""
        return self._then(FilterRecords(predicate), name)

    def flat_map_records(
        self, function: Callable[[Record], Iterable[Record]], *, keeps_key: bool = False, name: str | None = None
    ) -> Stream:
        """Replace each record by those of `function(record)`: none, one or many. `keeps_key` is as of `map_records`."""
        return self._then(FlatMapRecords(function, keeps_key), name)

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
        keeps_key: bool = False,
        name: str | None = None,
    ) -> Stream:
        """Replace each record by `await function(record)`, as `map_async` does; `keeps_key` is as of `map_records`."""
        return self._then(MapAsyncRecords(function, concurrency, _timeout_ms(timeout), retries, keeps_key), name)

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        *,
        key_type: pa.DataType | None = None,
        value_type: pa.DataType | None = None,
        keeps_key: bool = False,
        name: str | None = None,
    ) -> Stream:
        """Replace whole batches by `function(batch)`, for code that is vectorised itself; both are Arrow's.

        The batch has the columns `key`, `value`, `timestamp` and `row`; what is returned needs `value`, and `row` too
        if it has fewer or more records: it says which input record each comes from, and must not decrease. A key or
        value has the Arrow type that it has by itself unless one is given: a JSON object is a struct of its fields, and
        None is null in binary. All records of a call have one type, so the function is called for each run of them.
        How many records a batch has is not to be relied on: where the function fails on a batch, it is called again
        with parts of it, down to the record that it fails on. `keeps_key` is as of `map_records`, but that another key
        ends the job, whatever becomes of records that go wrong.
        """
        return self._then(MapBatches(function, key_type, value_type, keeps_key), name)

    def key_by(
        self,
        function: Callable[[Any], Any],
        *,
        name: str,
        key: Serde | None = None,
        value: Serde | None = None,
        partitions: int | None = None,
    ) -> Stream:
        """Give each record the key `function(value)`, and bring all records of one key together.

        The stream goes through a topic of the job's own, `<job>-<name>-repartition`: state by key behind it has one
        state for each key, wherever its records came from. It is made at the start, with as many partitions as the
        greatest of the inputs before it has, or `partitions`. What is written there is part of the job's transactions,
        so a record goes on behind it when the checkpoint has completed that it was written before.
        Timestamp and headers are kept. Values travel in the format of their source, if nothing has changed them since,
        else as JSON, or by the serde `value`. Keys come back as they were, bytes, text, and what JSON can encode, or
        travel by the serde `key`. The order of records of one key holds as far as they came from one partition.
        """
        return self._keyed(KeyBy(function), name, key, value, partitions)

    def key_by_records(
        self,
        function: Callable[[Record], Any],
        *,
        name: str,
        key: Serde | None = None,
        value: Serde | None = None,
        partitions: int | None = None,
    ) -> Stream:
        """Do as `key_by` does, with the key `function(record)`: of a tombstone, say, its old key tells the new one."""
        return self._keyed(KeyByRecords(function), name, key, value, partitions)

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

    def stateful_map_records(
        self, function: StatefulFunction, *, name: str, state: Serde | None = None, keeps_key: bool = False
    ) -> Stream:
        """Replace each record by those of `new_state, outputs = function(state, record)`: None, a Record or several.

        The state is that of `stateful_map`; `keeps_key` is as of `map_records`.
        """
        return self._then(StatefulMapRecords(function, name, Json() if state is None else state, keeps_key), name)

    def process(self, processor: Processor, *, name: str, keeps_key: bool = False) -> Stream:
        """Replace each record by those that `processor.process(record, context)` returns or yields.

        The processor declares states by key, which are kept in checkpoints under `name`; may set timers by event time;
        and sees the records of one partition number in order. Where keys may come from is as with `stateful_map`, which
        is the short form, and faster. `keeps_key` says that whatever it returns, yields or puts into a side output has
        the key of the record, or timer, so that state by key may follow; it is checked, as of `map_records`.
        """
        return self._then(Process(processor, name, keeps_key), name)

    def table(self, name: str, *, state: Serde | None = None, broadcast: bool = False) -> Table:
        """Keep the latest value of each key, for other streams to be joined with; None, a tombstone, deletes it.

        The latest is the one that comes last, whatever its timestamp. Values are kept in checkpoints under `name`,
        encoded by the serde `state` (JSON unless said otherwise), whose form of them a join sees. Where keys may come
        from is as with `stateful_map`.

        With `broadcast`, every subtask has all of the table in memory: it reads the source of this stream from its
        first record to its end before the first record of the job, at each start, and follows it then. So a stream with
        any key may be joined with it; nothing of it is in checkpoints, and which of its changes a record meets
        nothing says. The source is the table's alone, behind it may stand map, filter, flat_map and peek.
        """
        serde = Json() if state is None else state
        return Table(self._job, KeepBroadcast(name, serde) if broadcast else KeepTable(name, serde), self._at)

    def join(
        self,
        other: Table | Stream,
        function: Callable[[Any, Any], Any],
        *,
        how: HowBoth = "inner",
        key: Callable[[Any], Any] | None = None,
        within: str | timedelta | None = None,
        grace: str | timedelta | None = None,
        states: tuple[Serde, Serde] | None = None,
        name: str | None = None,
    ) -> Stream:
        """Replace each value by `function(value, other value)`, for what a table or another stream has for its key.

        With a table, `other` is what it has just now; a record for whose key there is nothing is dropped, or with
        `how="left"` joined with None. Only records of this stream put something out, never a change of the table. In a
        broadcast table what is looked up is `key(value)`, if given; for None there is nothing.

        With a stream, each two records whose event times are at most `within` apart make one, of the later time. Those
        that meet nothing go out with None when the stream time is past their time, `within` and the `grace`, behind
        which none of the other side is waited for: with `how="left"` those of this stream, with "outer" of both. Both
        wait in checkpoints under `name`, encoded by the serdes `states` (JSON unless said otherwise). Without a name it
        is made of the inputs of both sides, such as topics: `orders-join-payments`. A second join of these needs one.

        Both sides must be written with the same key, by the same partitioner, to the same number of partitions: other
        numbers are refused at the start. With a broadcast table all that does not matter.
        """
        job = self._job.name
        if isinstance(other, Stream) and other._job is self._job:
            if within is None:
                raise ConfigurationError(f'job {job!r}: a join of streams is within a time: join(..., within="5m")')
            if key is not None:
                raise ConfigurationError(f"job {job!r}: two streams meet by their keys: set them with key_by")
            times = checked_ms("within of a join", within), 0 if grace is None else checked_ms("grace of a join", grace)
            name = join_name(name, "a join of streams", self._job.operators, self._at, other._at)
            joined = JoinStreams(function, how, *times, name, states or (Json(), Json()))
            return Stream(self._job, self._job.add(joined, (self._at, other._at)))
        table = checked_table(
            other, self._job, "a stream is joined with what stream.table(name) returns, or with another stream"
        )
        if (within, grace, states) != (None, None, None):
            raise ConfigurationError(f"job {job!r}: a table has no time: within, grace and states are of two streams")
        step = table.joined(function, cast(How, how), key)
        return Stream(self._job, self._job.add(step, (self._at, table.at), name))

    def join_as_of(
        self,
        table: Table,
        function: Callable[[Any, Any], Any],
        *,
        keep: str | timedelta,
        grace: str | timedelta | None = None,
        how: How = "inner",
        state: Serde | None = None,
        name: str | None = None,
    ) -> Stream:
        """Replace each value by `function(value, other value)`, for what a table had for its key at its event time.

        A row of the table changes at the time of each record that the table is made of. Its versions are kept in
        checkpoints, under `name`, for records that come at most `keep` behind the stream time; one that is further
        behind goes wrong. A record does not wait for versions, so it misses one of its time that comes behind it; with
        a `grace` it waits until the stream time is so far past its own, in checkpoints, encoded by the serde `state`
        (JSON unless said otherwise), and goes out then. `keep` is no shorter. Without a match, `how` and what keys must
        be are as of `join`; without a name, it is made of the inputs of both sides.
        """
        versions = checked_table(table, self._job, "join_as_of needs one, stream.table(name)")
        grace_ms = 0 if grace is None else checked_ms("grace of join_as_of", grace)
        times, serde = (checked_ms("keep of join_as_of", keep), grace_ms), Json() if state is None else state
        return Stream(self._job, versions.joined_as_of(self._at, function, times, how, serde, name))

    def side_output(self, name: str) -> Stream:
        """Return the stream of what the processor before it puts out with `context.output(name, record)`."""
        made_by = next((operator.operation for operator in self._job.operators if operator.id == self._at), None)
        if not isinstance(made_by, Process):
            raise ConfigurationError(
                f"job {self._job.name!r}: only what process makes has side outputs: process(...).side_output(...)"
            )
        if name not in (declared := type(made_by.processor).outputs):
            raise ConfigurationError(
                f"job {self._job.name!r}: {made_by} has no side output {name!r}: its class declares outputs = "
                f"{declared!r}"
            )
        return Stream(self._job, str(Port(self._at, name)))

    def window(
        self, windows: Windows, *, grace: str | timedelta | None = None, idle: str | timedelta | None = None
    ) -> WindowedStream:
        """Cut the stream into windows of event time, by key; `.count`, `.sum` or another of its methods follows.

        A window closes when the stream time under its partition number has reached its end and the grace behind that, a
        duration such as "10s", nothing unless said otherwise. Where keys may come from is as with `stateful_map`; every
        record needs a timestamp.

        With `idle`, such as "30s", a partition number that has had no record for so long, and has none to read, follows
        the others: with each checkpoint its stream time is brought up to the least of those that have records, in the
        whole job. So its windows are told, when depends on the clock, and records that come to it of before are late.
        """
        if not isinstance(windows, Windows):
            raise ConfigurationError(f'window needs the kind of windows, such as Tumbling("1m"), not {windows!r}')
        grace_ms = 0 if grace is None else checked_ms("the grace of window", grace)
        idle_ms = None if idle is None else positive_ms("idle of window", idle)
        return WindowedStream(self._windowed, windows, grace_ms, idle_ms)

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """Return one stream of the records of this one and of the others; those of one source keep its order."""
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

    def _keyed(
        self, step: KeyBy | KeyByRecords, name: str, key: Serde | None, value: Serde | None, partitions: int | None
    ) -> Stream:
        through = Repartition(own_name(self._job.name, name), key, value, partitions)
        return Stream(self._job, add_key_by(self._job, self._at, step, name, through, self._job.on_error))

    def _windowed(self, step: WindowAggregate) -> Callable[[str], Stream]:
        operator = self._job.add(step, (self._at,), None)
        return lambda output: Stream(self._job, str(Port(operator, output)))

    def _then(self, what: Operation, name: str | None) -> Stream:
        return Stream(self._job, self._job.add(what, (self._at,), name))


def _timeout_ms(written: str | timedelta | None) -> int | None:
    try:
        return None if written is None else duration_ms(written)
    except ValueError as error:
        raise ConfigurationError(f"timeout of map_async: {error}") from error
