"""Runs a job to its end: one attempt after the other, until it finishes, is stopped, or can't go on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.aftermath import leave_nothing_open
from twopc.driver.attempt import Attempt, AttemptFailed
from twopc.driver.doubtful_topics import doubts
from twopc.driver.embedded import coordinator_for
from twopc.driver.events import EventWatch
from twopc.driver.host import Host, StoppedEarly
from twopc.driver.recovery import Planner
from twopc.driver.restart import RestartStrategy
from twopc.driver.signals import StopSignals
from twopc.driver.start import checkpoint_to_restore
from twopc.driver.stopping import NOTHING_LOST
from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition, Pipeline
from twopc.kafka.config_file import read_kafka_config
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.ids import NO_ATTEMPT
from twopc.protocol.job_events import JobEvent
from twopc.rpc.job_client import JobClient

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run ended. Counts are of the last attempt; `stopped` tells a stop from the end of a bounded input."""

    job: str
    attempts: int
    checkpoints_completed: int
    last_checkpoint_id: int
    records_in: int
    records_out: int
    stopped: bool
    seconds: float


def run(
    definition: JobDefinition,
    settings: RunSettings,
    *,
    on_event: Callable[[JobEvent], None] | None = None,
    job_file: str | None = None,
    stop: threading.Event | None = None,
    host: Host | None = None,
) -> RunReport:
    """Run a job until its bounded input is read, or it is stopped, and return the report.

    SIGTERM, the first Ctrl-C, and `stop` being set ask for a last checkpoint.

    `on_event` is called with every event of the job, on a thread of its own. `job_file` is how a host that starts fresh
    processes finds the job; `host` is where the subtasks run, in place of what the settings name. Raises the error that
    ended the job, after the restart strategy has given up on it.
    """
    started = time.monotonic()
    # Workers don't share the driver's working directory.
    settings = replace(settings, checkpoint_dir=str(Path(settings.checkpoint_dir).resolve()))
    if settings.kafka_config:
        own = read_kafka_config(Path(settings.kafka_config))
        settings = replace(settings, kafka_properties={**own, **settings.kafka_properties})
    definition = definition.with_access(settings.kafka_properties)
    pipeline = definition.pipeline("run")
    restore_from = checkpoint_to_restore(settings, definition.name)
    with ExitStack() as closing:
        coordinator = closing.enter_context(coordinator_for(settings, _bind_host(settings), definition.name))
        client = JobClient(coordinator.address, token=coordinator.token, tls=coordinator.tls)
        closing.callback(client.close)
        signals = closing.enter_context(StopSignals(stop))
        watch = EventWatch(coordinator.events or client, definition.name, on_event)
        planner = Planner(pipeline.source, bounded=settings.until_end)
        host = host or _host(settings, job_file, signals)
        closing.callback(host.close)
        with suppress(StoppedEarly):
            signals.unless_requested(partial(client.wait_ready, 30))
        closing.enter_context(watch)
        context = JobContext(definition.name, NO_ATTEMPT, settings.parallelism, settings)
        for end in (pipeline.source, pipeline.sink):
            closing.enter_context(end.watched(context))
        for doubt in doubts(pipeline.source.topics, pipeline.sink.topics, partial(_is_one_cluster, pipeline, context)):
            log.warning(doubt)
        _run_attempts(
            lambda: Attempt(definition, settings, client, coordinator, host, planner, watch, signals),
            restore_from,
            RestartStrategy.of(settings),
            watch,
            signals,
            lambda failure: leave_nothing_open(definition, settings, client, failure, hurried=signals.requested),
        )
        return RunReport(
            job=definition.name,
            attempts=watch.attempts,
            checkpoints_completed=watch.completed_in_run,
            last_checkpoint_id=watch.last_completed,
            records_in=watch.records_in,
            records_out=watch.records_out,
            stopped=signals.requested,
            seconds=time.monotonic() - started,
        )


def _is_one_cluster(pipeline: Pipeline, context: JobContext) -> bool:
    """Whether source and sink are on one cluster, as far as can be told: a sink without transactions names none."""
    try:
        shared = pipeline.sink.shared_transaction(context)
        return shared is None or shared.cluster in (None, pipeline.source.cluster(context))
    except TwoPhaseCommitError:
        return True


def _run_attempts(
    attempt_of: Callable[[], Attempt],
    restore_from: str,
    restarts: RestartStrategy,
    watch: EventWatch,
    signals: StopSignals,
    give_up: Callable[[AttemptFailed], None],
) -> None:
    """Run one attempt after the other until one finishes the job; raise what ends it otherwise."""
    failed: AttemptFailed | None = None
    ever_submitted = False
    while True:
        try:
            return attempt_of().run(restore_from, failed)
        except StoppedEarly:
            return _stopped_early(failed)
        except AttemptFailed as failure:
            failed, ever_submitted = failure, ever_submitted or failure.submitted
            # Somebody is waiting at a prompt for this very message: a wrong address never gets right by itself.
            delay = _delay(failure, restarts, signals) if ever_submitted else None
            if delay is None:
                give_up(failure)
                # What the host saw of it stays its cause: a traceback of the user's own, if there is one.
                raise failure.error from failure.error.__cause__
        if watch.completed_in_run:
            restore_from = LATEST
        log.warning("attempt failed: %s; trying again in %.1f s (restart %d)", failed.error, delay, restarts.used)
        signals.wait(delay)


def _stopped_early(failed: AttemptFailed | None) -> None:
    """A stop before anything was read is one as was asked for; one that keeps the job from going on is not."""
    if failed is None:
        log.warning("stopped before a record was read")
        return
    raise Unavailable(
        f"stopped without a last checkpoint, while the job was starting again. {NOTHING_LOST}. What had ended it: "
        f"{failed.error}"
    ) from failed


def _delay(failure: AttemptFailed, restarts: RestartStrategy, signals: StopSignals) -> float | None:
    """Return how long to wait before the next attempt, None if there is to be none."""
    if not failure.restartable or signals.requested:
        return None
    return restarts.after_failure(ran_seconds=failure.ran_seconds, completed_checkpoint=failure.completed_checkpoint)


def _bind_host(settings: RunSettings) -> str:
    """Where a coordinator inside the driver listens: loopback, if every worker is on this machine."""
    if settings.coordinator is None and settings.host == "spark":
        from twopc.spark.master import is_local, master_of

        if not is_local(master := master_of(settings.master)):
            raise ConfigurationError(
                f"workers under master {master!r} may be on other machines and can't reach a coordinator inside the "
                "driver: start one with `twopc coordinator start` where they can reach it, and name it with "
                "--coordinator (TWOPC_COORDINATOR, or coordinator= in job.run)"
            )
    return "127.0.0.1"


def _host(settings: RunSettings, job_file: str | None, signals: StopSignals) -> Host:
    if settings.host == "inline":
        from twopc.driver.inline import InlineHost

        return InlineHost(settings.parallelism)
    if settings.host == "process":
        from twopc.driver.processes import ProcessHost

        if job_file is None:
            raise ConfigurationError(
                "host 'process' needs the job in a file: run it with `twopc run FILE --host process`"
            )
        return ProcessHost(job_file)
    from twopc.spark.launch import SparkHost

    return SparkHost(settings.master, stop=lambda: signals.requested)
