"""One version of a job: what must be known of it before it is held against another, and what it makes of the input."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twopc.config import RunSettings
from twopc.drill.expected_output import ExpectedOutput
from twopc.drill.job import DrillJob
from twopc.drill.output_comparison import Ends
from twopc.drill.version_diff import VersionOutput
from twopc.errors import ConfigurationError, UserCodeError
from twopc.graph import JobDefinition
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
    """A version of a job, called by its file. Nothing of `drilled` is run: it says what is where."""

    file: str
    drilled: DrillJob
    access: Mapping[str, Any] = field(repr=False)
    max_time_ahead_ms: int

    @classmethod
    def of(cls, file: str, access: Mapping[str, Any], settings: RunSettings) -> Version:
        """Load the file, and forget it again; raise ConfigurationError for a job that can't be drilled."""
        with loaded_apart(file) as loaded:
            job = DrillJob.of(loaded.with_access(access), settings, access)
        if not any(map(job.is_judged, job.connectors.sinks)):
            raise ConfigurationError(f"job {job.name!r} of {file} can't be compared: {'; '.join(job.left_out)}")
        return cls(file, job, access, settings.max_time_ahead_ms)

    @property
    def job(self) -> str:
        return self.drilled.name

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.drilled.connectors.topics

    @property
    def output(self) -> str | None:
        """Its topic; None where it has several, or a function chooses."""
        topics = [sink.topic for sink in self.drilled.connectors.sinks.values()]
        return topics[0] if len(topics) == 1 and isinstance(topics[0], str) else None

    @property
    def states(self) -> frozenset[str]:
        return frozenset(map(str, self.drilled.definition.state_serdes))

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
        work, ahead_ms = restoration.work, self.max_time_ahead_ms
        with ExpectedOutput(definition, metadata, folder, work, ahead_ms) as expected_output:
            try:
                new = expected_output.declare(dropped)
            except ConfigurationError as error:
                raise ConfigurationError(f"{self.file}: {error}") from error
            try:
                computed = expected_output.compute(self.drilled.inputs, restoration.starts, restoration.ends)
                made = [(record.topic, record.expected) for record in computed]
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
