"""One version of a job: what must be known of it before it is held against another, and what it makes of the input."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twopc.config import RunSettings
from twopc.drill.broker import Cluster
from twopc.drill.comparing import Ends
from twopc.drill.expected import Reckoner
from twopc.drill.scratch import parts_of
from twopc.drill.version_diff import VersionOutput
from twopc.errors import ConfigurationError, UserCodeError
from twopc.graph import JobDefinition
from twopc.kafka.preflight import bootstrap_servers_of
from twopc.loader.job_loader import loaded_apart
from twopc.protocol.facts import CheckpointMetadata


@dataclass(frozen=True, slots=True)
class Restoration:
    """The copy of a checkpoint, where it is, a folder to work in, and from where to where the input is read."""

    metadata: CheckpointMetadata
    job_folder: Path
    work: Path
    starts: Ends
    ends: Ends


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a job, called by its file. `output` is its topic, None where a function chooses it."""

    file: str
    job: str
    inputs: tuple[str, ...]
    output: str | None
    states: frozenset[str]
    servers: str
    access: Mapping[str, Any] = field(repr=False)
    properties: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, file: str, access: Mapping[str, Any], settings: RunSettings) -> Version:
        """Load the file, and forget it again; raise ConfigurationError for a job that can't be drilled."""
        with loaded_apart(file) as loaded:
            definition = loaded.with_access(access)
            source, sink = parts_of(definition)
            return cls(
                file=file,
                job=definition.name,
                inputs=tuple(source.topics),
                output=sink.topic if isinstance(sink.topic, str) else None,
                states=frozenset(map(str, definition.state_serdes)),
                servers=bootstrap_servers_of(source.bootstrap_servers, settings),
                access=access,
                properties={**source.properties, **access},
            )

    def cluster(self) -> Cluster:
        """Where its input is."""
        return Cluster(self.servers, self.properties)

    def make(self, restoration: Restoration, dropped: Collection[str]) -> tuple[VersionOutput, Sequence[str]]:
        """Work out what it makes, and which of its states are not in the checkpoint, so that they begin empty.

        `dropped` are states that it leaves behind. Raises ConfigurationError where a run would.
        """
        with loaded_apart(self.file) as loaded:
            return self._made(loaded.with_access(self.access), restoration, dropped)

    def _made(
        self, definition: JobDefinition, restoration: Restoration, dropped: Collection[str]
    ) -> tuple[VersionOutput, Sequence[str]]:
        metadata, folder = restoration.metadata, restoration.job_folder
        with Reckoner(definition, metadata, folder, restoration.work) as reckoner:
            try:
                new = reckoner.declare(dropped)
            except ConfigurationError as error:
                raise ConfigurationError(f"{self.file}: {error}") from error
            try:
                made = list(reckoner.reckon(self.servers, restoration.starts, restoration.ends))
            except UserCodeError as error:
                return VersionOutput(self.file, failure=str(error)), new
        return VersionOutput(self.file, made), new


def refuse_other_input(one: Version, other: Version) -> None:
    """Raise ConfigurationError where both don't read the same topics: there would be nothing to compare."""
    if set(one.inputs) != set(other.inputs):
        raise ConfigurationError(
            f"--against: {other.file} reads {', '.join(other.inputs)}, and {one.file} reads {', '.join(one.inputs)}: "
            "only versions that read the same topics can be compared"
        )


def dropped_of(one: Version, other: Version, named: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return which of the states that are `named` each version leaves behind: those that it doesn't declare."""
    if both := sorted(set(named) & one.states & other.states):
        raise ConfigurationError(
            f"--drop-states names {both[0]!r}, which both {one.file} and {other.file} declare: take it out"
        )
    return frozenset(named) - one.states, frozenset(named) - other.states
