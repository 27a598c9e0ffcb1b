"""Runs one benchmark: load, job, reader, and the sampler beside them."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from twopc import events
from twopc.bench.figures import steady_cpu, steady_rate, summary
from twopc.bench.load import PacedLoad, produce_all, values_of
from twopc.bench.plan import BenchPlan
from twopc.bench.reader import STALL_SECONDS, OutputReader
from twopc.bench.recorder import Recorder
from twopc.bench.result import BenchResult, SinkRate
from twopc.bench.usage import UsageSampler
from twopc.config import RunSettings
from twopc.driver.processes import plain_processes_begun
from twopc.driver.run import run as run_job
from twopc.errors import ConfigurationError, TwoPhaseCommitError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.reachability import await_reachable
from twopc.kafka.connectors import KafkaConnectors
from twopc.kafka.input.topic_reader import read, whole
from twopc.listing import listed
from twopc.loader.job_loader import load_job
from twopc.scratch.job_file import write_job_file
from twopc.scratch.other_topics import rebound
from twopc.storage.scratch_folder import CHECKPOINTS, scratch_folder

SERIES_MAX = 5_000
QUIET_SECONDS, QUIET_INTERVALS = 2.0, 5.0
"""A job that reads what it writes has read all when nothing has come for so long, and so many checkpoint intervals."""

REPORTED_SETTINGS = ("parallelism", "checkpoint_interval_ms", "host", "master")
REPORTED_LOAD = ("records", "record_bytes", "keys", "partitions", "rate")
PACKAGES = ("twopc-streams", "confluent-kafka", "pyspark", "rocksdict")


class Interrupted(TwoPhaseCommitError):
    """The benchmark was asked to end before it had measured anything."""

    exit_code = 130


Values = Mapping[str, list[bytes]]
"""The values that each source reads, by operator id."""


def input_of(plan: BenchPlan) -> Values:
    """Return the values of the input; raise ConfigurationError if the job can't be benchmarked, or not with these."""
    connectors = KafkaConnectors.only(load_job(plan.job_file), "benchmarked")
    return {key: values_of(plan, source.value) for key, source in connectors.inputs.items()}


def refuse_tables_elsewhere(plan: BenchPlan) -> None:
    """Raise ConfigurationError if the job can't be benchmarked on a broker that has none of its topics."""
    if tables := KafkaConnectors.of(load_job(plan.job_file)).broadcasts:
        raise ConfigurationError(
            f"the job has broadcast tables, and what they are made of is read where it is ({listed(tables)}): name the "
            "brokers (--bootstrap-servers)"
        )


def bench(
    plan: BenchPlan,
    values: Values,
    settings: RunSettings,
    *,
    say: Callable[[str], None],
    on_event: Callable[[events.Event], None] | None = None,
    excluded: frozenset[int] = frozenset(),
) -> BenchResult:
    """Run the benchmark on topics of its own, which are deleted afterwards; return what was measured.

    `say` is told what is going on. `excluded` are processes whose CPU and memory are not the job's, a local broker's.
    """
    name = f"bench-{secrets.token_hex(4)}"
    servers = settings.bootstrap_servers
    # A paced run needs the time at which a record was due; any other that at which its output was appended.
    output_stamp = "CreateTime" if plan.rate else "LogAppendTime"
    await_reachable(servers)
    made: list[str] = []
    cluster, connectors = Cluster(servers), KafkaConnectors.of(load_job(plan.job_file))
    stamps = dict.fromkeys(connectors.scratch_inputs(name).values(), "CreateTime")
    outputs = connectors.scratch_outputs(name)
    own = [outputs.pop(sink) for sink in connectors.own.values()]
    stamps |= dict.fromkeys(outputs.values(), output_stamp)
    try:
        with cluster.client() as client:
            for topic, stamp in stamps.items():
                client.create_topic(topic, plan.partitions, settings={"message.timestamp.type": stamp})
                made.append(topic)
        with scratch_folder("bench") as folder:
            inner = scratch_settings(plan, settings, folder)
            run = _Run(plan, inner, name, folder, values, on_event, excluded)
            return run.throughput(say) if plan.rate is None else run.latency(say)
    finally:
        with cluster.client() as client:
            # The job itself makes those of its own, if it comes so far.
            for topic in (*made, *client.topics(own)):
                client.delete_topic(topic)


def scratch_settings(plan: BenchPlan, settings: RunSettings, folder: Path) -> RunSettings:
    """Return the settings of the benchmarked run: checkpoints of its own; no metrics or traces of the real job's."""
    return replace(
        settings,
        kafka_config="",
        checkpoint_dir=str(folder / CHECKPOINTS),
        metrics_port=None,
        ui_port=None,
        traces=False,
        otlp_metrics=False,
        until_end=plan.rate is None,
    )


def shares(records: int, sources: Sequence[str]) -> dict[str, int]:
    """Return how many records each source reads, all of them together so many."""
    each, rest = divmod(records, len(sources))
    return {source: each + (number < rest) for number, source in enumerate(sources)}


class _Run:
    def __init__(
        self,
        plan: BenchPlan,
        settings: RunSettings,
        name: str,
        folder: Path,
        values: Values,
        on_event: Callable[[events.Event], None] | None,
        excluded: frozenset[int],
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._cluster = Cluster(settings.bootstrap_servers)
        connectors = KafkaConnectors.of(load_job(plan.job_file))
        self._inputs, self._outputs = connectors.scratch_inputs(name), connectors.scratch_outputs(name)
        self._own = [self._outputs.pop(sink) for sink in connectors.own.values()]
        self._shares = shares(plan.records, list(self._inputs))
        self._job_file = write_job_file(folder, rebound, plan.job_file, name=name)
        self._values = values
        self._on_event = on_event
        self._running, self._fed = threading.Event(), threading.Event()
        self._recorder = Recorder()
        self._sampler = UsageSampler(excluded)
        self._began = self._seconds = 0.0
        self._written = 0

    def throughput(self, say: Callable[[str], None]) -> BenchResult:
        """Produce everything, run the job to its end, then read the output."""
        plan = self._plan
        for source, topic in self._inputs.items():
            values, records = self._values[source], self._shares[source]
            size = sum(map(len, values)) // len(values)
            say(f"producing {records:,} records of {size} bytes to {plan.partitions} partitions of {source}")
            produce_all(self._cluster, topic, plan, values, records)
        say(f"running {plan.job_file}")
        self._run_job(None)
        say("reading the output")
        reader = self._reader()
        reader.finish(self._written)
        return self._result(reader.stamps_ms, [])

    def _reader(self) -> OutputReader:
        return OutputReader(self._cluster.servers, list(dict.fromkeys(self._outputs.values())), self._plan.partitions)

    def _loads(self) -> list[PacedLoad]:
        """One for each source, each at its share of the rate."""
        assert self._plan.rate is not None, "a paced load has a rate"
        rate = self._plan.rate / len(self._inputs)
        return [
            PacedLoad(self._cluster, topic, self._plan, self._values[source], self._shares[source], rate)
            for source, topic in self._inputs.items()
        ]

    def latency(self, say: Callable[[str], None]) -> BenchResult:
        """Run the job, produce at the plan's rate and read beside it, and stop the job when all was seen."""
        say(f"running {self._plan.job_file}, with {self._plan.rate:,} records a second")
        reader, loads = self._reader(), self._loads()
        stop = threading.Event()

        def feed() -> None:
            self._running.wait()
            try:
                with ThreadPoolExecutor(len(loads), "twopc-bench-load") as feeders:
                    for fed in [feeders.submit(load.run) for load in loads]:
                        fed.result()
                self._wait_until_read()
            finally:
                self._fed.set()
                stop.set()

        with ThreadPoolExecutor(1, "twopc-bench-feeder") as executor:
            fed = executor.submit(feed)
            try:
                self._run_job(stop)
                reader.finish(self._written)
            finally:
                for load in loads:
                    load.stop()
                self._running.set()
                reader.close()
            fed.result()
        return self._result({topic: [] for topic in reader.stamps_ms}, reader.latencies_ms)

    def _wait_until_read(self) -> None:
        """Until the job has read what was produced, or has read nothing more for a while.

        What it writes and reads itself comes beside that, nobody knows how much of it.
        """
        stall_seconds, due = STALL_SECONDS, float(self._plan.records)
        if self._own:
            stall_seconds = QUIET_SECONDS + QUIET_INTERVALS * self._settings.checkpoint_interval_ms / 1000
            due = math.inf
        seen, since = self._recorder.records, time.monotonic()
        while seen < due and time.monotonic() - since < stall_seconds:
            time.sleep(0.05)
            if self._recorder.records > seen:
                seen, since = self._recorder.records, time.monotonic()

    def _run_job(self, stop: threading.Event | None) -> None:
        self._began = time.time()
        with self._sampler, plain_processes_begun(self._settings, self._job_file) as host:
            done = run_job(load_job(self._job_file), self._settings, on_event=self._note, stop=stop, host=host)
        # Signals set an event of the caller's too.
        if done.stopped and not self._fed.is_set():
            raise Interrupted("the benchmark was ended before the job had read all records: nothing was measured")
        self._seconds = time.time() - self._began
        # What an attempt before the last one wrote isn't counted in the report.
        self._written = done.records_out - self._passed() if done.attempts == 1 else self._plan.records

    def _passed(self) -> int:
        """The number of records that the job has written for itself."""
        if not self._own:
            return 0
        return sum(map(len, read(self._cluster, whole(self._cluster, self._own))))

    def _note(self, event: events.Event) -> None:
        self._recorder.note(event)
        if isinstance(event, events.CheckpointCompleted):
            self._running.set()
        if self._on_event is not None:
            self._on_event(event)

    def _result(self, stamps_by_topic: Mapping[str, list[int]], latencies: list[float]) -> BenchResult:
        stamps_ms = [stamp for stamps in stamps_by_topic.values() for stamp in stamps]
        recorder, samples, plan, began = self._recorder, self._sampler.samples, self._plan, self._began
        visible = len(stamps_ms) or len(latencies)
        memory = [(sample.at - began, sample.resident_bytes / 1e6) for sample in samples]
        return BenchResult(
            job=plan.job_file,
            records=plan.records,
            written=self._written,
            visible=visible,
            records_per_s=steady_rate(stamps_ms),
            sources=self._shares,
            sinks={
                ", ".join(sink for sink, other in self._outputs.items() if other == topic): SinkRate(
                    len(stamps), steady_rate(stamps)
                )
                for topic, stamps in stamps_by_topic.items()
                if stamps
            },
            cpu_s_per_million=None if plan.rate else steady_cpu(recorder, samples, plan.records),
            cpu_s_per_million_whole=(samples[-1].cpu_seconds if samples else 0.0) / plan.records * 1e6,
            startup_s=None if recorder.started is None else recorder.started - began,
            seconds=self._seconds,
            checkpoints=len(recorder.checkpoints),
            checkpoints_aborted=recorder.aborted,
            restarts=max(0, recorder.restarts),
            checkpoint_ms=summary([duration for _, duration in recorder.checkpoints]),
            pause_ms=summary(recorder.pauses),
            latency_ms=summary(latencies),
            memory_mb=max((megabytes for _, megabytes in memory), default=0.0),
            worker_mb=max((sample.largest_child_bytes for sample in samples), default=0) / 1e6,
            settings={name: getattr(plan, name) for name in REPORTED_LOAD}
            | {name: getattr(self._settings, name) for name in REPORTED_SETTINGS},
            versions={package: version(package) for package in PACKAGES},
            rates=recorder.rates(),
            checkpoint_series=[(at - began, duration) for at, duration in recorder.checkpoints][:SERIES_MAX],
            pauses=recorder.pauses[:SERIES_MAX],
            latencies=latencies[:: max(1, len(latencies) // SERIES_MAX)],
            memory_series=memory[:: max(1, len(memory) // SERIES_MAX)],
        )
