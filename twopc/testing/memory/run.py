"""A user's own test of a job: no broker, no Spark, no JVM; a crash is one call."""

from __future__ import annotations

import gc
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self, TypeVar, get_args

from twopc.clock import ManualClock, SystemClock
from twopc.config import MAX_TIME_AHEAD_MS, RunSettings
from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.input.decoding import decoded
from twopc.kafka.repartition import RepartitionSink
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.listing import listed
from twopc.record import Headers, Record
from twopc.serde import BYTES, HeaderSerde, Serde
from twopc.state.layout import StateName
from twopc.storage.memory import MemoryStore
from twopc.testing.memory.process import MemoryProcess
from twopc.testing.memory.sink import MemorySink
from twopc.testing.memory.source import MemorySource
from twopc.testing.memory.stored_state import stored_state
from twopc.testing.memory.topics import LogRecord, MemoryTopics, NewRecord
from twopc.testing.rows import keys_in, values_in

T = TypeVar("T")

Moment = Literal["processing", "pre-commit", "completion"]


IN_MEMORY = "/dev/shm"  # noqa: S108 - each run makes a folder of its own in it

MOST_ROUNDS = 1_000
"""How often a job may feed itself before that is taken for endless."""

TIMESTAMP_MS = 1_700_000_000_000
"""That of records that are sent without one."""

NEVER_MS = 365 * 24 * 3600 * 1000
"""Checkpoints are taken when the test says so."""


class MemoryRun:
    """Runs a job in the calling thread, on topics in memory: the runtime, coordinator, driver and state of production.

    What is sent is read by the job's Kafka sources and decoded by their serdes, what Kafka sinks write is encoded by
    theirs; other sources and sinks run as they are. `partitions` is how many each topic has, or how many some have, by
    name: the others have 1. `parallelism` is how many subtasks there are. Nothing is left to chance or to a clock: the
    same calls have the same results; but a record is no further ahead of the machine's than `max_time_ahead`, "24h".

    What ends the job is raised by the call that meets it, as `job.run` would raise it; the next call starts the job
    again, from its last completed checkpoint. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        job: Job | JobDefinition,
        *,
        partitions: int | Mapping[str, int] = 1,
        parallelism: int = 1,
        max_time_ahead: str | timedelta | None = None,
    ) -> None:
        definition = job.definition() if isinstance(job, Job) else job
        _refuse_one_name_on_two_clusters(definition)
        self._topics = MemoryTopics(partitions)
        self._definition = definition.replaced(
            {key: _in_memory(end, self._topics) for key, end in definition.ends.items()}
        )
        self._sources = [source for source in self._definition.ends.values() if isinstance(source, MemorySource)]
        self._sinks = [sink for sink in self._definition.sinks.values() if isinstance(sink, MemorySink)]
        if isinstance(partitions, Mapping):
            self._require_known(partitions)
        for topic in self._inputs:
            self._topics.create(topic)
        ahead_ms = MAX_TIME_AHEAD_MS if max_time_ahead is None else duration_ms(max_time_ahead)
        times: dict[str, Any] = {"checkpoint_interval_ms": NEVER_MS, "max_time_ahead_ms": ahead_ms}
        self._settings = RunSettings(parallelism=parallelism, checkpoint_dir="memory", host="inline", **times)
        self._store = MemoryStore()
        self._clock = ManualClock(unix_ms=SystemClock().now().unix_ms)
        self._folder = TemporaryDirectory(prefix="twopc-memory-", dir=_memory_folder())
        self._process: MemoryProcess | None = None
        self._read: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._serdes: dict[tuple[int, int], TopicSerdes] = {}
        self._closed = False
        try:
            self._running()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        *,
        timestamp: int | None = None,
        headers: Mapping[str, bytes | None] | Headers | None = None,
        partition: int | None = None,
    ) -> None:
        """Send one record to a topic that the job reads, encoded by the serdes of the source that reads it.

        Without a partition it goes where Kafka's clients would put it: by the hash of the key, in turn without one.
        Without a timestamp it has the same as all others that are sent without one.
        """
        source = self._source(topic)
        pair = self._serdes_of(source.key, source.value).of(topic)
        left = _pairs(headers)
        raw: list[bytes | None] = []
        for serde, each in zip(pair, (key, value), strict=True):
            data, left = (
                serde.serialize_with(each, left) if isinstance(serde, HeaderSerde) else (serde.serialize(each), left)
            )
            raw.append(data)
        self.send_raw(topic, raw[1], raw[0], timestamp=timestamp, headers=left, partition=partition)

    def send_raw(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        timestamp: int | None = None,
        headers: Mapping[str, bytes | None] | Headers | None = None,
        partition: int | None = None,
    ) -> None:
        """Send one record as bytes, whatever the source's serdes make of them."""
        self._source(topic)
        stamp = TIMESTAMP_MS if timestamp is None else timestamp
        pairs = _pairs(headers)
        new = NewRecord(topic=topic, key=key, value=value, timestamp=stamp, headers=pairs, partition=partition)
        self._running()
        self._topics.append(new)

    def checkpoint(self) -> None:
        """Let all that was sent go through the job, take a checkpoint, and commit it.

        Raises CheckpointDeclined where a sink or source declines it.
        """
        for _ in range(MOST_ROUNDS):
            process = self._run_through()
            if process is None:
                return
            before = process.positions
            if self._guarded(process, process.checkpoint) and not process.has_more(before):
                return
        raise ConfigurationError(
            f"job {self._definition.name!r} still had records to read after {MOST_ROUNDS} checkpoints: it writes to "
            "a topic that it reads itself, for ever"
        )

    def advance(self, to: int | str | timedelta) -> None:
        """Let stream time pass without a record: to a time in Unix milliseconds, or by a duration such as "1m".

        All that was sent goes through first. Then the stream time of every operator reaches that time under every
        partition number, where it is not later: windows close, timers fire. A duration is counted from the greatest
        stream time of all. Where the job has `key_by`, operators before it go first, and a checkpoint brings what they
        make behind it, before time passes there. What comes of it all is there to `read` after the next checkpoint.
        """
        process = self._run_through()
        if process is None:
            return
        time = to if type(to) is int else self._later(process.stream_time, to)
        stages = self._definition.stages
        last = max(stages.values(), default=0)
        for stage in range(last + 1):
            process = self._run_through()
            if process is not None:
                sources = [source for source in self._definition.sources if stages.get(source, 0) <= stage]
                self._guarded(process, partial(process.pass_time, sources, time))
            if stage < last:
                self.checkpoint()

    def read(self, topic: str) -> list[Record]:
        """Return what is committed in a topic of the job's sinks and was not read before, in the order of writing.

        Key and value are decoded by the serdes of the sink that wrote them.
        """
        self._running()
        self._require_written(topic)
        records: list[LogRecord] = []
        for partition in self._topics.partitions_of(topic):
            records += self._topics.readable(topic, partition, self._read[topic, partition])
        for record in records:
            at = (topic, record.row.partition_)
            self._read[at] = max(self._read[at], record.row.offset_ + 1)
        return [self._decoded(record) for record in sorted(records, key=lambda each: each.number)]

    def state(self, operator: str, key: Any, *, partition: int | None = None) -> Any:
        """Return the state of a key as the last completed checkpoint has it, decoded; None where it has none.

        `operator` is the name of the operator that keeps it; of one that keeps several, OPERATOR/STATE. Raises
        ConfigurationError where several partitions have a state for the key, and none is named.
        """
        self._running()
        state = self._state_of(operator)
        serde = self._definition.state_serdes[state]
        found = stored_state(self._definition.name, self._store, Path(self._folder.name), state, serde, key)
        if partition is not None:
            found = {number: raw for number, raw in found.items() if number == partition}
        if len(found) > 1:
            raise ConfigurationError(
                f"key {key!r} has a state of {operator!r} in each of the partitions {listed(sorted(found))}: "
                "name one, with partition="
            )
        return next((serde.deserialize(raw) for raw in found.values()), None)

    def crash(self, after: Moment = "processing") -> None:
        """Let the whole job end as by `kill -9`: what came after the last completed checkpoint is gone.

        It comes when all that was sent has been processed and is written to open transactions. With "pre-commit", it
        comes in a checkpoint, of which every subtask has done its part and none was heard: it will never complete. With
        "completion", when that checkpoint has completed and nobody has committed. The next call starts the job again.
        """
        if after not in (moments := get_args(Moment)):
            raise ConfigurationError(f"a crash comes after {listed(moments)}, not after {after!r}")
        process = self._run_through()
        if process is not None and after != "processing":
            self._guarded(process, process.pre_commit if after == "pre-commit" else process.complete)
        self._process = process = None
        if self._opens_more_than_memory:
            # The files and connections that a process has open are closed when it dies, whoever forgot to.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()

    def close(self) -> None:
        """End the job without another checkpoint, and let go of everything."""
        process, self._process, self._closed = self._process, None, True
        if process is not None:
            process.kill()
        for serdes in self._serdes.values():
            serdes.close()
        self._folder.cleanup()

    @property
    def _opens_more_than_memory(self) -> bool:
        serdes = [
            *((source.key, source.value) for source in self._sources),
            *((sink.key, sink.value) for sink in self._sinks),
        ]
        others = len(serdes) < len(self._definition.ends)
        return others or any(key.must_be_opened or value.must_be_opened for key, value in serdes)

    @property
    def _inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topic for source in self._sources for topic in source.topics))

    def _source(self, topic: str) -> MemorySource:
        source = next((each for each in self._sources if topic in each.topics), None)
        if source is None:
            known = f"it reads {listed(self._inputs)}" if self._inputs else "it reads none"
            raise ConfigurationError(f"job {self._definition.name!r} does not read topic {topic!r}: {known}")
        return source

    def _serdes_of(self, key: Serde, value: Serde) -> TopicSerdes:
        """Return the test's own of these two, which live as long as it does."""
        return self._serdes.setdefault((id(key), id(value)), TopicSerdes(key, value))

    def _decoded(self, record: LogRecord) -> Record:
        row = record.row
        serdes = self._serdes_of(record.key or BYTES, record.value or BYTES)
        batch = decoded([row], serdes, keys_in, values_in)
        return Record(
            key=batch.keys[0],
            value=batch.values[0],
            timestamp=row.timestamp_,
            headers=row.headers_,
            topic=row.topic_,
            partition=row.partition_,
            offset=row.offset_,
        )

    def _state_of(self, operator: str) -> StateName:
        states = self._definition.state_serdes
        own = [state for state in states if operator == state.path]
        own = own or [state for state in states if operator == state.operator and state.is_declared]
        if len(own) == 1:
            return own[0]
        job = self._definition.name
        if own:
            raise ConfigurationError(f"operator {operator!r} of job {job!r} keeps several states: name {listed(own)}")
        known = f"only {listed(states)}" if states else "no operator of the job does"
        raise ConfigurationError(f"operator {operator!r} of job {job!r} keeps no state: {known}")

    def _require_written(self, topic: str) -> None:
        static = tuple(dict.fromkeys(output for sink in self._sinks for output in sink.outputs))
        if topic in static or any(callable(sink.topic) for sink in self._sinks):
            return
        known = f"it writes {listed(static)}" if static else "it writes none"
        raise ConfigurationError(f"job {self._definition.name!r} does not write topic {topic!r}: {known}")

    def _require_known(self, topics: Iterable[str]) -> None:
        known = dict.fromkeys((*self._inputs, *(output for sink in self._sinks for output in sink.outputs)))
        unknown = [topic for topic in topics if topic not in known]
        if unknown and not any(callable(sink.topic) for sink in self._sinks):
            raise ConfigurationError(
                f"partitions= names topic {unknown[0]!r}, which job {self._definition.name!r} does not have: it has "
                f"{listed(known)}"
            )

    def _later(self, now: int | None, by: Any) -> int:
        try:
            duration = duration_ms(by)
        except ValueError as error:
            raise ConfigurationError(f"advance: {error}; or Unix milliseconds") from error
        if now is None:
            raise ConfigurationError(
                f"job {self._definition.name!r} has no stream time yet to count from: say one, in Unix milliseconds"
            )
        return now + duration

    def _running(self) -> MemoryProcess:
        """Return the job's process; start one, which recovers, where there is none."""
        if self._closed:
            raise ConfigurationError("this MemoryRun was closed: make another")
        if self._process is None:
            process = MemoryProcess(self._definition, self._settings, self._store, self._clock, Path(self._folder.name))
            self._process = process
            self._guarded(process, process.start)
        assert self._process is not None
        return self._process

    def _run_through(self) -> MemoryProcess | None:
        """Let all that was sent go through; return the process, None where the job has finished by that."""
        process = self._running()
        self._guarded(process, process.run_through)
        return self._process

    def _guarded(self, process: MemoryProcess, work: Callable[[], T]) -> T:
        """Do something with the process; one that ends, however it does, is not the job's any more."""
        try:
            return work()
        finally:
            if process.over:
                self._process = None


def _memory_folder() -> str | None:
    """Return a folder that is in memory, where the machine has one: what is restored goes through files."""
    return IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None


def _refuse_one_name_on_two_clusters(definition: JobDefinition) -> None:
    """Raise ConfigurationError where two topics of the job have one name: in memory they would be one."""
    there: dict[str, tuple[str, str | None]] = {}
    for key, end in definition.ends.items():
        if not isinstance(end, KafkaSource | KafkaSink):
            continue
        for topic in end.topics if isinstance(end, KafkaSource) else end.outputs:
            first, servers = there.setdefault(topic, (key, end.bootstrap_servers))
            if servers != end.bootstrap_servers:
                raise ConfigurationError(
                    f"job {definition.name!r} can't run in memory, where a topic's name is all that tells it from "
                    f"others: {topic!r} is on other brokers for {first!r} than for {key!r}. Have the test give one of "
                    "them another name"
                )


def _in_memory(end: Any, topics: MemoryTopics) -> Any:
    match end:
        case KafkaSource() if end.pattern is not None:
            raise ConfigurationError(
                f"a job in memory reads topics that it names, but here the pattern {end.pattern} does: test the job "
                "with KafkaSource(['topic', ...]) in its place"
            )
        case KafkaSource():
            return MemorySource(end, topics)
        case RepartitionSink():
            topics.create(end.outputs[0], end.partitions)
            return MemorySink(end, topics)
        case KafkaSink():
            return MemorySink(end, topics)
        case _:
            return end


def _pairs(headers: Mapping[str, bytes | None] | Headers | None) -> Headers | None:
    return list(headers.items() if isinstance(headers, Mapping) else headers) if headers else None
