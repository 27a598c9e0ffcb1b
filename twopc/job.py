"""A job as the user writes it: sources, operators, sinks. Building one runs nothing and opens nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from twopc.config import RunSettings
from twopc.error_policy import ErrorPolicy, checked_policy
from twopc.errors import ConfigurationError, TwoPhaseCommitError, UserCodeError
from twopc.graph import FAIL, GraphBuilder, JobDefinition
from twopc.operators import AssignTimestamps
from twopc.source import Source
from twopc.stream import Stream

if TYPE_CHECKING:
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

        The event time of a record is its own timestamp, or `timestamp(value)`: Unix milliseconds, None for its own. A
        record without a value (a tombstone) keeps its own, and the function is not called.
        `on_error` is what becomes of its records that go wrong, wherever in the job that is; the job's unless given.
        """
        if not isinstance(source, Source):
            raise ConfigurationError(f"job {self.name!r}: {source!r} is not a source such as KafkaSource('topic')")
        policy = self.on_error if on_error is None else on_error
        at = self.add(source.with_access(self.properties), (), name, policy)
        return Stream(self, at if timestamp is None else self.add(AssignTimestamps(timestamp), (at,)))

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

        Raises a TwoPhaseCommitError, whose text says what to do; what a function of the job has raised is its cause.
        """
        from twopc.driver.processes import plain_processes_begun
        from twopc.loader.job_file import job_file_of
        from twopc.loader.job_loader import refuse_while_loading

        try:
            refuse_while_loading()
            resolved = RunSettings.resolve(**settings)
            job_file = job_file_of(self) if resolved.host == "process" else None
            definition = self.definition()
            with plain_processes_begun(resolved, job_file) as host:
                from twopc.driver.run import run

                return run(definition, resolved, on_event=on_event, stop=stop, host=host)
        except TwoPhaseCommitError as error:
            # Where in the framework it was found says nothing to whoever reads the program's traceback.
            cause = error.__cause__ if isinstance(error, UserCodeError) else None
            raise error.with_traceback(None) from cause
