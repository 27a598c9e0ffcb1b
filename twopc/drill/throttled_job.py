"""A job that reads slowly until it is told to finish, so that checkpoints and faults fall into a small load."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twopc.context import JobContext, SubtaskContext
from twopc.drill.delegating_reader import DelegatingReader
from twopc.drill.recovery import note_read
from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.clients.access import access_of
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.source import KafkaSource
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import SplitPosition
from twopc.record import Batch
from twopc.scratch.other_topics import rebound_definition
from twopc.sink import Sink
from twopc.source import Source, SourcePlanner, SourceReader, Split

POLL_RECORDS = 10
READS = "reads.log"


class ThrottledReader(DelegatingReader):
    """Hands over at most so many records a second, a few at a time; as many as it can once `finish` is there.

    How far it is it writes down beside that file.
    """

    def __init__(self, reader: SourceReader, rate: float, finish: Path) -> None:
        super().__init__(reader)
        self._reads = finish.with_name(READS)
        note_read(self._reads, reader.positions(), opened=True)
        self._rate = rate
        self._finish = finish
        self._due = time.monotonic()

    def poll(self, timeout: float, most: int) -> Batch | None:
        batch = self._poll(timeout, most)
        if batch is not None:
            note_read(self._reads, self.reader.positions(), opened=False)
        return batch

    def _poll(self, timeout: float, most: int) -> Batch | None:
        if self._finish.exists():
            return self.reader.poll(timeout, most)
        early = self._due - time.monotonic()
        if early > 0:
            time.sleep(min(early, timeout))
            if early > timeout:
                return None
        batch = self.reader.poll(timeout, min(most, POLL_RECORDS))
        self._due = time.monotonic() + (len(batch) / self._rate if batch is not None else 0.0)
        return batch


class ThrottledSource(Source):
    """A source whose readers are throttled; `rate` is that of one subtask."""

    def __init__(self, source: KafkaSource, rate: float, finish: str) -> None:
        self.source = source
        self.inputs = source.inputs
        self.rate = rate
        self.finish = finish

    def input_of(self, split: str) -> str:
        return self.source.input_of(split)

    def precedes(self, position: SplitPosition, later: SplitPosition) -> bool:
        return self.source.precedes(position, later)

    def skips(self, split: Split) -> bool:
        return self.source.skips(split)

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self.source.open_planner(context)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        return ThrottledReader(self.source.open_reader(context, splits), self.rate, Path(self.finish))

    def with_access(self, properties: Mapping[str, Any]) -> ThrottledSource:
        return ThrottledSource(self.source.with_access(properties), self.rate, self.finish)

    def describe(self) -> Mapping[str, object]:
        return self.source.describe()


def throttled_job(spec: str, *, name: str, rate: float, finish: str, own_broker: bool) -> Job:
    """Return the job of a job file on other topics, under another name, each input at a pace."""
    definition = drilled_definition(load_job(spec), name, own_broker=own_broker)
    return Job.of(
        definition.replaced(
            {
                key: ThrottledSource(source, rate, finish)
                for key, source in KafkaConnectors.of(definition).inputs.items()
            }
        )
    )


def drilled_definition(definition: JobDefinition, name: str, *, own_broker: bool) -> JobDefinition:
    """Return the job on scratch topics of this name, as it gets at the brokers of the drill."""
    rebound = rebound_definition(definition, name, "drilled")
    return without_access(rebound) if own_broker else rebound


def without_access(definition: JobDefinition) -> JobDefinition:
    """Return the job as it gets at a broker of the drill's own: that one knows neither TLS nor logins."""
    connectors = KafkaConnectors.of(definition)
    parts: dict[str, Source | Sink] = {}
    for key, source in connectors.sources.items():
        reads = copy.copy(source)
        reads.properties = _tuning(source.properties)
        parts[key] = reads
    for key, sink in connectors.sinks.items():
        writes = copy.copy(sink)
        writes.properties = _tuning(sink.properties)
        parts[key] = writes
    return definition.replaced(parts)


def _tuning(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in access_of(properties)}
