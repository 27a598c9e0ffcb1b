"""One run of one system, measured from outside: its output's append times, its process tree's CPU and memory."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from peers.case import Case
from peers.system import Launch, Place, System
from peers.topics import APPEND_TIME, LARGEST_MESSAGE, Inputs, committed_end, read_output
from peers.workloads import WORKLOADS
from twopc.bench.figures import steady_rate
from twopc.bench.usage import Usage, UsageSampler, cpu_at
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic, delete_topic

LOOK_SECONDS = 0.5
STILL_SECONDS = 3.0
"""An output that has all records and hasn't grown for so long is whole: a commit a second would have shown."""
GRACE_SECONDS = 120.0
SLOWEST = 10_000
"""Records a second below which a run is given up."""
COMPLAINT_BYTES = 600
SERIES_POINTS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of one run. A figure that can't be told is None; `failure` says what was wrong.

    whole: records a second from the first to the last output record's append time. last_half: the same over the last
    half of the output. middle: between its tenth and ninetieth percent. cpu_*: CPU seconds a million input records of
    the process tree, over the whole run, start-up included, and over those two parts.
    startup_s: from the command to the first output record. largest_python_series: the resident set, in MB, of the
        largest Python process, some forty times over the run.
    """

    system: str
    case: Case
    whole: float | None = None
    last_half: float | None = None
    middle: float | None = None
    cpu_whole: float | None = None
    cpu_last_half: float | None = None
    cpu_middle: float | None = None
    startup_s: float | None = None
    wall_s: float = 0.0
    peak_rss_mb: float = 0.0
    largest_python_mb: float = 0.0
    largest_python_series: tuple[float, ...] = ()
    broker_cpu_s: float = 0.0
    failure: str | None = None

    def to_json(self) -> dict[str, object]:
        return asdict(self)


class Bench:
    """Runs systems on one broker, one after the other."""

    def __init__(self, broker: LocalBroker) -> None:
        self._servers = broker.bootstrap_servers
        self._brokers = frozenset(node.pid for node in broker.nodes if node.pid)
        self._inputs = Inputs(self._servers)

    def run(self, system: System, case: Case) -> Run:
        """Run a case once, and judge its output."""
        workload = WORKLOADS[case.job]
        source, second = self._inputs.topic(case), self._inputs.second(case)
        target = f"out-{secrets.token_hex(4)}"
        dead = f"{target}-dead" if workload.dead_judge else ""
        settings = APPEND_TIME | {"max.message.bytes": str(LARGEST_MESSAGE)}
        outputs = [topic for topic in (target, dead) if topic]
        for topic in outputs:
            create_topic(self._servers, topic, case.partitions, settings=settings)
        try:
            with tempfile.TemporaryDirectory(prefix="twopc-peers-") as name:
                place = Place(self._servers, source, target, f"{system.name}-{target}", Path(name), second, dead)
                return self._measured(system, case, place)
        finally:
            for topic in outputs:
                delete_topic(self._servers, topic)

    def _measured(self, system: System, case: Case, place: Place) -> Run:
        launch = system.launch(case, place)
        log = place.folder / "log"
        broker_before, began = self._broker_cpu(), time.time()
        with UsageSampler(self._brokers | {os.getpid()}) as sampler:
            failure = self._play(launch, case, place, log)
        wall, broker_cpu = time.time() - began, self._broker_cpu() - broker_before
        samples = sampler.samples
        largest = [sample.largest_child_bytes / 1e6 for sample in samples]
        judge = WORKLOADS[case.job].judge(case)
        stamps = read_output(place.servers, place.target, case.partitions, judge)
        return Run(
            system=system.name,
            case=case,
            wall_s=wall,
            peak_rss_mb=max((sample.resident_bytes for sample in samples), default=0) / 1e6,
            largest_python_mb=max(largest, default=0.0),
            largest_python_series=tuple(largest[:: max(1, len(largest) // SERIES_POINTS)]),
            broker_cpu_s=broker_cpu,
            failure=failure or judge.complaint() or _wrong_dead_letters(case, place),
            **figures_of(stamps, samples, case.records, began),
        )

    def _play(self, launch: Launch, case: Case, place: Place, log: Path) -> str | None:
        """Run the command until it has ended, or its output is whole; return what went wrong."""
        deadline = time.monotonic() + GRACE_SECONDS + case.records / SLOWEST
        with started(launch, log) as process:
            if launch.ends:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(deadline - time.monotonic())
            else:
                self._wait_until_whole(process, case, place, deadline)
            code = process.poll()
        if code is None and launch.ends:
            return f"it had not ended after {GRACE_SECONDS + case.records / SLOWEST:.0f} s: {_tail(log)}"
        if code is not None and (code != 0 or not launch.ends):
            return f"it ended with {code}: {_tail(log)}"
        return None

    def _wait_until_whole(self, process: subprocess.Popen[bytes], case: Case, place: Place, deadline: float) -> None:
        expected = WORKLOADS[case.job].judge(case).expected()
        end, since = 0, time.monotonic()
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            now = committed_end(place.servers, place.target, case.partitions)
            if now != end:
                end, since = now, time.monotonic()
            elif end >= expected and time.monotonic() - since > STILL_SECONDS:
                return

    def _broker_cpu(self) -> float:
        times = [psutil.Process(pid).cpu_times() for pid in self._brokers]
        return sum(each.user + each.system for each in times)


@contextlib.contextmanager
def started(launch: Launch, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command in a session of its own; at the end nothing of its process tree is left."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            launch.argv,
            env=os.environ | launch.env,
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def _wrong_dead_letters(case: Case, place: Place) -> str | None:
    judging = WORKLOADS[case.job].dead_judge
    if judging is None:
        return None
    judge = judging(case)
    read_output(place.servers, place.dead, case.partitions, judge)
    complaint = judge.complaint()
    return complaint and f"dead letters: {complaint}"


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        tree = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        tree = []
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def _tail(log: Path) -> str:
    return log.read_bytes()[-COMPLAINT_BYTES:].decode(errors="replace").strip()


def figures_of(stamps: Counter[int], samples: list[Usage], records: int, began: float) -> dict[str, float | None]:
    """Work out rates and CPU. Rates are of input records: an output may have fewer."""
    total = stamps.total()
    if not total:
        return {}
    share = records / total
    moments = {part: _moment(stamps, total * part) for part in (0.0, 0.1, 0.5, 0.9, 1.0)}

    def cpu(first: float, last: float) -> float | None:
        if moments[last] - moments[first] < 1.0:
            return None
        return (cpu_at(samples, moments[last]) - cpu_at(samples, moments[first])) / (records * (last - first)) * 1e6

    def rate(first: float, last: float) -> float | None:
        seconds = moments[last] - moments[first]
        return records * (last - first) / seconds if seconds > 0 else None

    middle = steady_rate(list(stamps.elements()))
    return {
        "whole": rate(0.0, 1.0),
        "last_half": rate(0.5, 1.0),
        "middle": None if middle is None else middle * share,
        "cpu_whole": samples[-1].cpu_seconds / records * 1e6 if samples else None,
        "cpu_last_half": cpu(0.5, 1.0),
        "cpu_middle": cpu(0.1, 0.9),
        "startup_s": moments[0.0] - began,
    }


def _moment(stamps: Counter[int], count: float) -> float:
    """Return when so many records had been appended, in Unix seconds."""
    ordered = sorted(stamps.items())
    for (stamp, _), done in zip(ordered, itertools.accumulate(many for _, many in ordered), strict=True):
        if done >= count:
            return stamp / 1000
    return ordered[-1][0] / 1000


def spread(values: list[float]) -> tuple[float, float, float]:
    """Return least, median and greatest."""
    return min(values), statistics.median(values), max(values)
