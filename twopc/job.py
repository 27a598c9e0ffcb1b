"""A job as the user writes it: a source, operators, a sink. Building one runs nothing and opens nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.listing import listed
from twopc.operators.steps import (
    SETS_KEYS,
    Filter,
    FilterRecords,
    FlatMap,
    FlatMapRecords,
    Map,
    MapBatches,
    MapRecords,
    StatefulMap,
    Step,
)
from twopc.protocol.ids import checked_name
from twopc.record import Record
from twopc.serde import Json, Serde
from twopc.sink import TwoPhaseCommitSink
from twopc.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from twopc.driver.run import RunReport
    from twopc.protocol.job_events import JobEvent

being_loaded: ContextVar[str] = ContextVar("being_loaded", default="")
"""The job file that is being loaded just now, which must only define its job."""


@dataclass(frozen=True, slots=True)
class JobOrigin:
    """Where a job was loaded from: the name of the module, and its file."""

    module: str
    path: Path


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """A complete and valid job, as data: all that has to reach a subtask.

    `origin` is there as long as loading it again gives the same job, but for how it gets at brokers.
    """

    name: str
    source: Source
    steps: tuple[Step, ...]
    sink: TwoPhaseCommitSink[Any]
    origin: JobOrigin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps if isinstance(step, StatefulMap)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(
                f"job {self.name!r} has more than one stateful_map named {twice[0]!r}: their states would mix; "
                "give each a name of its own"
            )
        self._refuse_scattered_keys()

    def _refuse_scattered_keys(self) -> None:
        """State by key is kept with the partition: where records of one key come from several, it has several."""
        keyed = [place for place, step in enumerate(self.steps) if isinstance(step, StatefulMap)]
        if not keyed:
            return
        refused = f"job {self.name!r}: {self.steps[keyed[-1]]} keeps a state for each key of each input partition, and"
        if len(topics := self.source.topics) > 1:
            raise ConfigurationError(
                f"{refused} the source reads {len(topics)} topics ({listed(topics)}): a key would have a state "
                "in each. Read one topic; or write the records of all to one topic with a job of its own, keyed "
                "as they are, and keep the state in a second job that reads that"
            )
        if before := next((step for step in self.steps[: keyed[-1]] if isinstance(step, SETS_KEYS)), None):
            raise ConfigurationError(
                f"{refused} {before} before it may change the key: records of the new key may come from any partition, "
                "and each has a state of its own. Put stateful_map before it, and change values with map, filter and "
                "flat_map, which keep the key; or write the records to a topic with their new keys, and keep the state "
                "in a second job that reads that"
            )

    @property
    def state_serdes(self) -> dict[str, Serde]:
        """How each state by key is encoded, by name."""
        return {step.name: step.state for step in self.steps if isinstance(step, StatefulMap)}

    def with_access(self, properties: Mapping[str, Any]) -> JobDefinition:
        """Return the job with Kafka properties that its source and sink have where they set none of their own."""
        source, sink = self.source.with_access(properties), self.sink.with_access(properties)
        return JobDefinition(self.name, source, self.steps, sink, self.origin)

    def describe(self) -> str:
        """Return the job as text, a line for each of its parts."""
        parts = [_described(self.source.describe()), *map(str, self.steps), _described(self.sink.describe())]
        return "\n".join([f"job {self.name}", *(f"  {part}" for part in parts)])


class Job:
    """A named job: `job.source(...)`, operators, `.sink(...)`; then `twopc run` or `job.run(...)`.

    The name is the job's identity: checkpoints are found again by it, and it is the consumer group and the prefix of
    the transactional ids unless source and sink are told otherwise. `properties` say how source and sink get at their
    brokers (security.protocol, sasl.username, ssl.ca.location, ... of librdkafka), where these say nothing.
    """

    def __init__(self, name: str, *, properties: Mapping[str, Any] | None = None) -> None:
        self.name = checked_name("job name", name)
        self._properties = dict(properties or {})
        self._source: Source | None = None
        self._end: tuple[tuple[Step, ...], TwoPhaseCommitSink[Any]] | None = None

    @classmethod
    def of(cls, definition: JobDefinition) -> Job:
        """Return a job that is complete already."""
        job = cls(definition.name)
        job._source = definition.source
        return job._finish(definition.steps, definition.sink)

    def source(self, source: Source) -> Stream:
        """Say where the records come from; return the stream to put operators on."""
        if not isinstance(source, Source):
            raise ConfigurationError(f"job {self.name!r}: {source!r} is not a source such as KafkaSource('topic')")
        if self._source is not None:
            raise ConfigurationError(
                f"job {self.name!r} has a source already: a job has one; a KafkaSource reads several topics, "
                "KafkaSource(['a', 'b'])"
            )
        self._source = source
        return Stream(self, ())

    def definition(self) -> JobDefinition:
        """Return the complete job; raise ConfigurationError for what is missing."""
        if self._source is None:
            raise ConfigurationError(f"job {self.name!r} has no source: begin with job.source(KafkaSource('topic'))")
        if self._end is None:
            raise ConfigurationError(f"job {self.name!r} has no sink: end the chain with .sink(KafkaSink('topic'))")
        steps, sink = self._end
        return JobDefinition(self.name, self._source, steps, sink).with_access(self._properties)

    def describe(self) -> str:
        return self.definition().describe()

    def run(
        self,
        *,
        on_event: Callable[[JobEvent], None] | None = None,
        stop: threading.Event | None = None,
        **settings: Any,
    ) -> RunReport:
        """Run the job until its end or until it is stopped: by SIGTERM, Ctrl-C, or `stop` being set.

        The keywords are the fields of `RunSettings`; durations may be written as `checkpoint_interval="500ms"`. What
        is not given comes from the environment (`TWOPC_PARALLELISM`, ...), else it has its default. `host="inline"`
        runs the functions in the calling thread, for breakpoints and notebooks. With `host="process"` each worker loads
        the file that the job is defined in: what that file runs stands under `if __name__ == "__main__":`.
        """
        if path := being_loaded.get():
            raise ConfigurationError(
                f"{path} runs its job while it is only being loaded: put job.run() under if __name__ == '__main__':"
            )
        from twopc.driver.run import run
        from twopc.loader.job_file import job_file_of

        resolved = RunSettings.resolve(**settings)
        job_file = job_file_of(self) if resolved.host == "process" else None
        return run(self.definition(), resolved, on_event=on_event, job_file=job_file, stop=stop)

    def _finish(self, steps: tuple[Step, ...], sink: TwoPhaseCommitSink[Any]) -> Job:
        if not isinstance(sink, TwoPhaseCommitSink):
            raise ConfigurationError(f"job {self.name!r}: {sink!r} is not a sink such as KafkaSink('topic')")
        self._end = (steps, sink)
        self.definition()
        return self


class Stream:
    """The records at one place of the chain. Every operator returns the next stream, and a stream has one next.

    Functions get one argument, the value of a record, or with `*_records` the whole `Record`. They run in the
    subtasks, on one record at a time and in the order of each partition, but a whole batch through one operator before
    the next: so they return new values and leave those that they are given as they are. One that raises stops the job
    with an error that names the record.
    """

    def __init__(self, job: Job, steps: tuple[Step, ...]) -> None:
        self._job = job
        self._steps = steps
        self._next = ""

    def map(self, function: Callable[[Any], Any]) -> Stream:
        """Replace each value by `function(value)`."""
        return self._then(Map(function))

    def filter(self, predicate: Callable[[Any], Any]) -> Stream:
        """Keep the records for whose value `predicate(value)` is true."""
        return self._then(Filter(predicate))

    def flat_map(self, function: Callable[[Any], Iterable[Any]]) -> Stream:
        """Replace each record by one for each value of `function(value)`, with its key, timestamp and headers."""
        return self._then(FlatMap(function))

    def map_records(self, function: Callable[[Record], Record]) -> Stream:
        """Replace each record by `function(record)`, made with `record.replace(key=..., value=...)`."""
        return self._then(MapRecords(function))

    def filter_records(self, predicate: Callable[[Record], Any]) -> Stream:
        """Keep the records for which `predicate(record)` is true."""
        return self._then(FilterRecords(predicate))

    def flat_map_records(self, function: Callable[[Record], Iterable[Record]]) -> Stream:
        """Replace each record by those of `function(record)`: none, one or many."""
        return self._then(FlatMapRecords(function))

    def map_batches(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch],
        *,
        key_type: pa.DataType | None = None,
        value_type: pa.DataType | None = None,
    ) -> Stream:
        """Replace whole batches by `function(batch)`, for code that is vectorised itself; both are Arrow's.

        The batch has the columns `key`, `value`, `timestamp` and `row`; what is returned needs `value`, and `row` too
        if it has fewer or more records: it says which input record each comes from, and must not decrease. The types
        of keys and values are taken from each batch unless given: JSON objects become structs of the fields that occur.
        How many records a batch has is not to be relied on.
        """
        return self._then(MapBatches(function, key_type, value_type))

    def stateful_map(
        self, function: Callable[[Any, Any], tuple[Any, Any]], *, name: str, state: Serde | None = None
    ) -> Stream:
        """Replace each value by the second of `new_state, output = function(state, value)`.

        There is a state for each key of each input partition, so the key must be the one that the input was written
        with: several topics, and an operator before it that may set the key, are refused. The state is None at first,
        kept in checkpoints under `name`, encoded by the serde `state` (JSON unless said otherwise), whose form of it
        the function sees: a tuple comes back from JSON as a list. A new state of None forgets the key. A key is bytes,
        text, or anything that JSON can encode: 1, "1" and true are three keys, and two objects with the same fields are
        one.
        """
        return self._then(StatefulMap(function, name, Json() if state is None else state))

    def sink(self, sink: TwoPhaseCommitSink[Any]) -> Job:
        """Say where the records go; return the job, which is complete now."""
        self._claim("sink")
        return self._job._finish(self._steps, sink)

    def _then(self, step: Step) -> Stream:
        self._claim(str(step))
        return Stream(self._job, (*self._steps, step))

    def _claim(self, following: str) -> None:
        """Refuse a second continuation: the first would silently be dropped."""
        if self._next:
            raise ConfigurationError(
                f"job {self._job.name!r}: {following} is put on a stream that already goes on to {self._next}; "
                "a job is one chain for now: use the stream that the operator before returned"
            )
        self._next = following


def _described(parts: Any) -> str:
    kind, *rest = (f"{name}={value}" if name != "type" else str(value) for name, value in parts.items())
    return f"{kind}({', '.join(rest)})"
