"""The jobs of a page: asked of their coordinator, and read from their ledgers, when somebody looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twopc.checkpoints.catalog import JobCheckpoints, read_job
from twopc.errors import ConfigurationError, TwoPhaseCommitError
from twopc.protocol.job_description import JobDescription
from twopc.storage.store import CheckpointStore
from twopc.ui.document import OwnFacts, Sight, document, overview
from twopc.ui.timeline import Row
from twopc.ui.traces import Traces

LEAST_SECONDS = 1.0
"""A ledger that may have changed is not read more often, however many look."""

MOST_SECONDS = 10.0
"""One that nothing is heard of is read again so often."""

Describe = Callable[[str], JobDescription | None]
"""Asks a job's coordinator; None where the job does not run. Raises a TwoPhaseCommitError if it does not answer."""

Letters = Callable[[str], list[Row]]
"""Reads the newest dead letters of a topic."""


class _Ledger(NamedTuple):
    at: float
    standing: object
    found: JobCheckpoints | None
    problem: str = ""


@dataclass
class Jobs:
    """`names` are those to show; `own` is what this process knows of the job that it runs. Any thread may ask."""

    store: CheckpointStore
    names: Callable[[], Iterable[str]]
    describe: Describe
    own: OwnFacts = field(default_factory=OwnFacts)
    letters: Letters | None = None
    traces: Traces = field(default_factory=Traces)
    clock: Callable[[], float] = time.monotonic
    _listed: tuple[float, list[str]] = field(default=(0.0, []), init=False)
    _ledgers: dict[str, _Ledger] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def overview(self) -> list[Row]:
        """Return a line for each job."""
        return [overview(self._sight(job)) for job in self._known()]

    def document(self, job: str) -> Row:
        """Return all that is shown of a job; raise ConfigurationError if there is none of that name."""
        self.require(job)
        return document(self._sight(job), self.own)

    def require(self, job: str) -> None:
        """Raise ConfigurationError if there is no job of that name."""
        known = self._known()
        if job not in known:
            raise ConfigurationError(f"there is no job {job!r} here; there are {', '.join(known) or 'none'}")

    def dead_letters(self, topic: str) -> list[Row]:
        """Return the newest dead letters of one of the job's topics, newest first; else raise ConfigurationError."""
        if self.letters is None or topic not in self.own.letter_topics:
            raise ConfigurationError(
                f"dead letters of {topic!r} can't be read from here: twopc dead-letters list {topic}"
            )
        return self.letters(topic)

    def _known(self) -> list[str]:
        """Ask which jobs there are, or return what was told lately: in a bucket that is a request for each."""
        with self._lock:
            at, known = self._listed
            if not known or self.clock() - at >= MOST_SECONDS:
                known = sorted(self.names())
                self._listed = self.clock(), known
            return known

    def _sight(self, job: str) -> Sight:
        described, problem = None, ""
        try:
            described = self.describe(job)
        except TwoPhaseCommitError as error:
            problem = str(error)
        ledger = self._ledger(job, None if described is None else _standing(described))
        return Sight(job, described, ledger.found, self.traces.of(job), problem or ledger.problem)

    def _ledger(self, job: str, standing: object) -> _Ledger:
        """Read a job's ledger, or return what was read lately. A job that has just begun has none yet."""
        with self._lock:
            last, now = self._ledgers.get(job), self.clock()
            if last is not None:
                age = now - last.at
                if age < LEAST_SECONDS or (age < MOST_SECONDS and standing == last.standing):
                    return last
            found, problem = None, ""
            try:
                found = read_job(self.store, job, None if last is None else last.found)
            except ConfigurationError:
                pass
            except (TwoPhaseCommitError, OSError) as error:
                problem = str(error)
            self._ledgers[job] = _Ledger(now, standing, found, problem)
            return self._ledgers[job]


def described_in(described: Iterable[JobDescription], job: str) -> JobDescription | None:
    """Return the description of one job among several, None if it is none of them."""
    return next((each for each in described if each.job == job), None)


def _standing(job: JobDescription) -> Any:
    """What changes where the ledger has."""
    return job.attempt, job.phase, job.completed, job.failed, [kept.outstanding for kept in job.kept]
