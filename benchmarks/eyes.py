"""What eyes cost at full speed: seconds with somebody at the page who also scrapes, and seconds without, in one run.

    python benchmarks/eyes.py [--records 40000000] [--runs 3] [--width 2] [--json FILE]

The job `upper` in plain processes, with --ui-port and --metrics-port, as fast as it can. In every other window somebody
follows the page's events, and scrapes once a second. Each such window is compared with the two beside it:

- the CPU that the driver takes more, as a part of the CPU of all processes of the job;
- how many records go through, which a machine moves by a tenth from window to window, so it wants an hour for 1 %.
  A disk moves it most: with TMPDIR on /dev/shm the broker has none.

A window lasts for a whole number of checkpoint intervals: else there is one checkpoint more or less in it. Those in
which a run begins or ends are left out.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition
from peers.case import Case
from peers.measure import started
from peers.ours import TwopcProcess
from peers.system import Launch, Place
from peers.topics import Inputs, committed_end

from twopc.testing.local_broker import LocalBroker
from twopc.testing.ports import free_port
from twopc.testing.topics import create_topic, delete_topic

WINDOW_SECONDS = 4.0
"""Four checkpoint intervals."""

SETTLE_SECONDS = 0.3
"""From the moment at which somebody comes or goes until a window begins."""

RAMP_WINDOWS = 2
"""The windows in which a run reaches its speed, and those in which it ends."""

LIMIT_SECONDS = 600.0
HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Window:
    """One window: whether somebody looked, records a second, and CPU seconds a second, of the driver and of all."""

    seen: bool
    rate: float
    driver: float
    cpu: float


class Eyes:
    """Looks and scrapes while it is open."""

    def __init__(self, ui: int, metrics: int, job: str) -> None:
        self._closed = threading.Event()
        targets = (lambda: self._follow(ui, f"/api/jobs/{job}/events"), lambda: self._scrape(metrics))
        self._threads = [threading.Thread(target=each, daemon=True) for each in targets]

    def __enter__(self) -> Eyes:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def _follow(self, port: int, path: str) -> None:
        connection = http.client.HTTPConnection(HERE, port, timeout=30)
        # The run may end meanwhile.
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", path)
            answer = connection.getresponse()
            while not self._closed.is_set() and answer.readline():
                pass
        connection.close()

    def _scrape(self, port: int) -> None:
        while not self._closed.wait(1.0):
            connection = http.client.HTTPConnection(HERE, port, timeout=30)
            with suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/metrics")
                connection.getresponse().read()
            connection.close()


def cpu_of(process: psutil.Process) -> tuple[float, float]:
    """Return the CPU seconds of a process, and of it with all that it has started."""
    own, *others = (each.cpu_times() for each in (process, *process.children(recursive=True)))
    return own.user + own.system, sum(each.user + each.system for each in (own, *others))


def windows(
    process: psutil.Process, consumer: Consumer, at: Sequence[TopicPartition], eyes: tuple[int, int, str]
) -> list[Window]:
    """Measure windows until the process ends; leave out the first and the last."""

    def now() -> tuple[float, float, float, int]:
        written = sum(consumer.get_watermark_offsets(each, timeout=30)[1] for each in at)
        return time.monotonic(), *cpu_of(process), written

    def measured(seen: bool) -> Window:
        time.sleep(SETTLE_SECONDS)
        before = now()
        time.sleep(WINDOW_SECONDS)
        seconds, driver, cpu, records = (after - start for after, start in zip(now(), before, strict=True))
        return Window(seen, records / seconds, driver / seconds, cpu / seconds)

    found: list[Window] = []
    with suppress(psutil.Error, OSError, http.client.HTTPException):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if len(found) % 2:
                with Eyes(*eyes):
                    found.append(measured(True))
            else:
                found.append(measured(False))
    return found[RAMP_WINDOWS:-RAMP_WINDOWS]


def run_once(servers: str, source: str, number: int, case: Case, folder: Path) -> list[Window]:
    """Run the job to its end."""
    target, ui, metrics = f"out-{number}", free_port(), free_port()
    create_topic(servers, target, case.partitions)
    place = Place(servers, source, target, target, folder / target)
    place.folder.mkdir()
    plain = TwopcProcess().launch(case, place)
    launch = Launch([*plain.argv, "--ui-port", str(ui), "--metrics-port", str(metrics)], plain.env)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "eyes"})
    at = [TopicPartition(target, partition) for partition in range(case.partitions)]
    with started(launch, place.folder / "log") as process:
        while process.poll() is None and committed_end(servers, target, case.partitions) == 0:
            time.sleep(0.1)
        job = _job_at(ui)
        found = windows(psutil.Process(process.pid), consumer, at, (ui, metrics, job))
        process.wait(LIMIT_SECONDS)
    consumer.close()
    delete_topic(servers, target)
    return found


def _job_at(port: int) -> str:
    connection = http.client.HTTPConnection(HERE, port, timeout=30)
    connection.request("GET", "/api/jobs")
    [job] = json.loads(connection.getresponse().read())
    connection.close()
    return str(job["job"])


def costs(found: Sequence[Window]) -> list[tuple[float, float, float]]:
    """Compare each window with eyes with those beside it: rate, driver's CPU in cores, and that as a part of all."""
    beside = zip(found, found[1:], found[2:], strict=False)
    return [
        (
            here.rate / ((left.rate + right.rate) / 2),
            here.driver - (left.driver + right.driver) / 2,
            (here.driver - (left.driver + right.driver) / 2) / ((left.cpu + right.cpu) / 2),
        )
        for left, here, right in beside
        if here.seen
    ]


def main() -> None:
    """Parse; start a broker; measure; print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=40_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--width", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    case = Case(job="upper", records=options.records, width=options.width)
    found: list[tuple[float, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="twopc-eyes-") as name, LocalBroker(Path(name) / "kafka") as broker:
        source = Inputs(broker.bootstrap_servers).topic(case)
        for number in range(options.runs):
            found += costs(run_once(broker.bootstrap_servers, source, number, case, Path(name)))
            rates, cores, parts = ([each[figure] for each in found] for figure in range(3))
            print(f"rate {_said(rates)}; cores {_said(cores)}; part of all CPU {_said(parts)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"rate_cores_part": found}) + "\n")


def _said(found: Sequence[float]) -> str:
    if len(found) < 2:
        return "of too few windows"
    error = statistics.stdev(found) / len(found) ** 0.5
    return f"{statistics.mean(found):.4f} (+- {error:.4f}), median {statistics.median(found):.4f}, {len(found)} windows"


if __name__ == "__main__":
    main()
