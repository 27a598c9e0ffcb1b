"""From `kill -9` of a worker to the first new committed output, part by part.

    python benchmarks/recovery.py [--kills 10] [--host spark|process] [--json FILE]

A job runs on a steady load. Once it has committed, a worker is killed; when output that is newer than the kill has
become visible and another checkpoint is committed, the next one is. Checkpoints are 0.2 s apart; the delay before each
restart is the first one of the default strategy, 0.1 s, since kills that come this often are no series of failures. The
parts, by the job's own events:

    detection     kill -9 to the attempt's being given up and the next one's start, the restart delay included
    recovery      the next attempt's start to its transactions' being settled (ours)
    resubmission  settled to all subtasks attached: starting Python workers, and on Spark a new barrier stage
    restore       attached to the first checkpoint triggered: state and sink opened, an interval waited for (ours)
    checkpoint    triggered to committed (ours)
    visible       committed to seen by a read_committed reader
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

from twopc import events
from twopc.bench.load import PacedLoad, values_of
from twopc.bench.plan import BenchPlan
from twopc.bench.reader import OutputReader
from twopc.config import RunSettings
from twopc.driver.processes import plain_processes_begun
from twopc.driver.run import run
from twopc.kafka.clients.cluster import Cluster
from twopc.loader.job_loader import load_job
from twopc.scratch.job_file import write_job_file
from twopc.scratch.other_topics import rebound
from twopc.serde import Bytes
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

UPPER = Path(__file__).parents[1] / "examples" / "upper.py"
PARTITIONS = 4
RATE = 2_000
INTERVAL_MS = 200
PARTS = ("detection", "recovery", "resubmission", "restore", "checkpoint", "visible", "whole")


class Watch:
    """Notes when each step of the current attempt was first seen; times are Unix seconds."""

    def __init__(self, parallelism: int) -> None:
        self.changed = threading.Condition()
        self.attempt = 0
        self.pids: dict[int, int] = {}
        self.first: dict[str, float] = {}
        self._parallelism = parallelism

    def note(self, event: events.Event) -> None:
        with self.changed:
            if isinstance(event, events.AttemptStarted):
                self.attempt, self.pids, self.first = event.attempt, {}, {}
            if isinstance(event, events.SubtaskAttached):
                self.pids[event.subtask] = event.pid
            if not isinstance(event, events.SubtaskAttached) or len(self.pids) == self._parallelism:
                self.first.setdefault(event.name, time.time())
            self.changed.notify_all()

    def wait_committed(self, attempt_after: int, seconds: float) -> dict[str, float]:
        """Wait until an attempt later than this one has committed a checkpoint everywhere."""
        with self.changed:
            done = self.changed.wait_for(
                lambda: self.attempt > attempt_after and "checkpoint-confirmed" in self.first, seconds
            )
            assert done, "the job did not recover"
            return dict(self.first)


def one_kill(watch: Watch, reader: OutputReader) -> dict[str, float]:
    """Kill a worker and wait for the next attempt; return the parts, in seconds."""
    with watch.changed:
        attempt, victim = watch.attempt, watch.pids[0]
    killed = time.time()
    os.kill(victim, signal.SIGKILL)
    first = watch.wait_committed(attempt, 120)
    visible = _first_after(reader, killed)
    started, confirmed = first["attempt-started"], first["checkpoint-confirmed"]
    steps = [killed, started, first.get("checkpoint-restored", started), first["subtask-attached"]]
    steps += [first["checkpoint-triggered"], confirmed, max(visible, confirmed)]
    parts = [later - earlier for earlier, later in pairwise(steps)]
    return dict(zip(PARTS, [*parts, visible - killed], strict=True))


def _first_after(reader: OutputReader, moment: float) -> float:
    """Return when the first record that was produced after this moment was seen."""
    deadline = time.monotonic() + 60
    start = 0
    while time.monotonic() < deadline:
        stamps = reader.stamps_ms["out"]
        for index in range(start, len(stamps)):
            if stamps[index] / 1000 > moment:
                return (stamps[index] + reader.latencies_ms[index]) / 1000
        start = max(0, len(stamps) - 10_000)
        time.sleep(0.01)
    raise SystemExit("no output became visible after the kill")


def measure(servers: str, folder: Path, kills: int, host: str, parallelism: int) -> list[dict[str, float]]:
    """Run the job beside a load, and kill."""
    plan = BenchPlan(job_file=str(UPPER), records=RATE * 60 * kills, rate=RATE, partitions=PARTITIONS)
    for name in ("in", "out"):
        create_topic(servers, name, PARTITIONS)
    job_file = write_job_file(
        folder, rebound, plan.job_file, name="recovery", topics={"source-1": "in", "sink-1": "out"}
    )
    watch, stop = Watch(parallelism), threading.Event()
    reader = OutputReader(servers, ["out"], PARTITIONS)
    load = PacedLoad(Cluster(servers), "in", plan, values_of(plan, Bytes()), plan.records, RATE)
    found: list[dict[str, float]] = []

    def drill() -> None:
        try:
            watch.wait_committed(0, 120)
            for _ in range(kills):
                time.sleep(2)
                found.append(one_kill(watch, reader))
                print({name: round(value, 2) for name, value in found[-1].items()}, flush=True)
        finally:
            stop.set()
            load.stop()

    threads = [threading.Thread(target=target, daemon=True) for target in (_quietly(load), drill)]
    for thread in threads:
        thread.start()
    settings = RunSettings.resolve(
        bootstrap_servers=servers,
        checkpoint_dir=str(folder / "checkpoints"),
        parallelism=parallelism,
        host=host,
        master=f"local[{parallelism}]",
        checkpoint_interval=f"{INTERVAL_MS}ms",
        restart_attempts=kills + 10,
        restart_strategy="fixed-delay",
    )
    with plain_processes_begun(settings, job_file) as processes:
        run(load_job(job_file), settings, on_event=watch.note, stop=stop, host=processes)
    reader.close()
    return found


def _quietly(load: PacedLoad):  # type: ignore[no-untyped-def]
    def produce() -> None:
        try:
            load.run()
        except Exception as error:  # noqa: BLE001 - the load is ended on purpose
            print(f"load: {error}", flush=True)

    return produce


def main() -> None:
    """Kill, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--host", choices=["spark", "process"], default="spark")
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twopc-recovery-") as name, LocalBroker(Path(name) / "kafka") as broker:
        found = measure(broker.bootstrap_servers, Path(name), options.kills, options.host, options.parallelism)
    print(f"{'part':14}{'p50 s':>8}{'max s':>8}")
    for part in PARTS:
        values = [kill[part] for kill in found]
        print(f"{part:14}{statistics.median(values):>8.2f}{max(values):>8.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
