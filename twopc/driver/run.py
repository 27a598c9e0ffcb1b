"""Runs a job to its end: one attempt after the other, until it finishes, is stopped, or can't go on."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from twopc import events
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.embedded import coordinator_for
from twopc.driver.events import EventWatch
from twopc.driver.host import Host, StoppedEarly
from twopc.driver.machine import Driver, Event
from twopc.driver.pages import pages_served, teller
from twopc.driver.running_job import RunningJob
from twopc.driver.shell import DriverShell, JobEdge
from twopc.driver.signals import StopSignals
from twopc.driver.start import checkpoint_to_restore
from twopc.driver.trace_export import traces_of
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.kafka.clients.config_file import read_kafka_config
from twopc.protocol.ids import NO_ATTEMPT
from twopc.protocol.record_errors import RecordErrorCount
from twopc.rpc.job_client import JobClient
from twopc.storage.open import open_store
from twopc.user_folders import temporary_folder

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of a run. Counts are of the last attempt; `stopped` tells a stop from the end of a bounded input.

    `record_errors` are of the records that went wrong while the job went on, by source and operator; empty if none did.
    """

    job: str
    attempts: int
    checkpoints_completed: int
    last_checkpoint_id: int
    records_in: int
    records_out: int
    stopped: bool
    seconds: float
    record_errors: tuple[RecordErrorCount, ...] = ()


def run(
    definition: JobDefinition,
    settings: RunSettings,
    *,
    on_event: Callable[[events.Event], None] | None = None,
    stop: threading.Event | None = None,
    host: Host | None = None,
) -> RunReport:
    """Run a job until its bounded input is read, or it is stopped, and return the report.

    SIGTERM, the first Ctrl-C, and `stop` being set ask for a last checkpoint.

    `on_event` is called with every event of the job, on a thread of its own. `host` is where the subtasks run,
    in place of what the settings name: plain processes are begun before this is imported. Raises the error that ended
    the job, after the restart strategy has given up on it.
    """
    from twopc.kafka.absence import naming_every_absence

    started = time.monotonic()
    # Every subtask needs one: it is missed now, and not in the middle.
    temporary_folder()
    store = open_store(settings.checkpoint_dir)
    # Workers don't share the driver's working directory.
    settings = replace(settings, checkpoint_dir=store.identity)
    if settings.kafka_config:
        own = read_kafka_config(Path(settings.kafka_config))
        settings = replace(settings, kafka_properties={**own, **settings.kafka_properties})
    definition = definition.with_access(settings.kafka_properties)
    source, sink = definition.source, definition.sink
    restore_from = checkpoint_to_restore(settings, definition.name)
    with ExitStack() as closing:
        coordinator = closing.enter_context(coordinator_for(settings, _bind_host(settings), definition.name))
        client = JobClient(coordinator.address, token=coordinator.token, tls=coordinator.tls)
        closing.callback(client.close)
        signals = closing.enter_context(StopSignals(stop))
        events: queue.Queue[Event] = queue.Queue()
        counting = closing.enter_context(pages_served(settings, coordinator, definition, store))
        tracing = closing.enter_context(traces_of(settings))
        listener = teller(tracing, counting, on_event)
        watch = EventWatch(coordinator.events or client, definition.name, events.put, listener)
        host = host or _host(definition.name, settings, signals)
        closing.callback(host.close)
        with suppress(StoppedEarly):
            signals.unless_requested(partial(client.wait_ready, 30))
        closing.enter_context(watch)
        context = JobContext(definition.name, NO_ATTEMPT, settings.parallelism, settings)
        for end in (source, sink):
            closing.enter_context(end.watched(context))
        job = RunningJob(definition, coordinator.address, coordinator.token)
        driver = Driver(job, settings, restore_from)
        edge = JobEdge(definition, source, sink, client, host, store)
        with naming_every_absence(definition, settings):
            DriverShell(driver, edge, watch, events, signals.requests).run()
        progress = driver.progress
        return RunReport(
            job=definition.name,
            attempts=progress.attempts,
            checkpoints_completed=progress.completed_checkpoints,
            last_checkpoint_id=progress.last_completed,
            records_in=progress.records_in,
            records_out=progress.records_out,
            stopped=signals.requested,
            seconds=time.monotonic() - started,
            record_errors=progress.record_errors,
        )


def _bind_host(settings: RunSettings) -> str:
    """The address of a coordinator inside the driver: loopback, if every worker is on this machine."""
    if settings.coordinator is None and settings.host == "spark":
        from twopc.spark.master import is_local, master_of

        if not is_local(master := master_of(settings.master)):
            raise ConfigurationError(
                f"workers under master {master!r} may be on other machines and can't reach a coordinator inside the "
                "driver: start one with `twopc coordinator start` where they can reach it, and name it with "
                "--coordinator (TWOPC_COORDINATOR, or coordinator= in job.run)"
            )
    return "127.0.0.1"


def _host(job: str, settings: RunSettings, signals: StopSignals) -> Host:
    if settings.host == "inline":
        from twopc.driver.inline import InlineHost

        return InlineHost(settings.parallelism)
    if settings.host == "process":
        raise ConfigurationError("host 'process' needs the job in a file: run it with `twopc run FILE --host process`")
    from twopc.spark.configuration import SparkConfiguration
    from twopc.spark.launch import SparkHost

    spark = SparkHost(settings.master, SparkConfiguration.of(job, settings), stop=lambda: signals.requested)
    spark.begin()
    return spark
