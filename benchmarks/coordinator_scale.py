"""What a checkpoint costs the coordinator, with 1 to 10,000 subtasks: its CPU, its memory, what it stores.

    python benchmarks/coordinator_scale.py [--subtasks 1 10 100 1000 10000] [--checkpoints 20] [--json FILE]

The production coordinator without its wire: `coordinator.jobs.Jobs` on a real folder. Every subtask attaches, says
of each checkpoint that it has one committable and one position, and reports the commit; each message comes by itself,
as it does from a stream of its own. Each size runs in a process of its own, so that its memory is its own too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from coordinator.events import Attached, MessageReceived, SessionId
from coordinator.jobs import Jobs
from twopc import events
from twopc.clock import ManualClock
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.facts import Committable, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import manifest_path
from twopc.protocol.messages import Ack, Committed, Complete, ToSubtask, Trigger
from twopc.protocol.requests import StartAttempt
from twopc.storage import files
from twopc.storage.disk import Disk
from twopc.storage.local import LocalStore

JOB = "scale"
INTERVAL_MS = 1_000
MANIFEST = b"the files of a snapshot"
DIGEST = sha256(MANIFEST).hexdigest()


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one checkpoint, the median of several. CPU is of the coordinator's one thread, fsync's waiting not counted.

    `ledger_bytes` are of the facts beside the metadata; `fsyncs` are all of a checkpoint, `fsyncs_to_complete` those
    between the last acknowledgement and Complete. `memory_mb` is what the process grew by, at its peak.
    """

    subtasks: int
    cpu_ms: float
    wall_ms: float
    cpu_us_per_subtask: float
    metadata_bytes: int
    ledger_bytes: int
    fsyncs: int
    fsyncs_to_complete: int
    memory_mb: float


class CountingDisk(Disk):
    """Counts what is waited for."""

    def __init__(self) -> None:
        self.fsyncs = 0

    def sync(self, descriptor: int) -> None:
        self.fsyncs += 1
        super().sync(descriptor)

    def sync_folder(self, path: Path) -> None:
        self.fsyncs += 1
        super().sync_folder(path)


class Subtasks:
    """The outlet of the coordinator, and every subtask behind it."""

    def __init__(self, disk: CountingDisk) -> None:
        self.triggered: CheckpointId | None = None
        self.completed: CheckpointId | None = None
        self.fsyncs_when_asked = 0
        self.fsyncs_when_completed = 0
        self.disk = disk

    def send(self, session: SessionId, message: ToSubtask) -> None:
        if isinstance(message, Trigger):
            self.triggered = message.checkpoint_id
        elif isinstance(message, Complete):
            self.completed = message.checkpoint_id
            self.fsyncs_when_completed = self.disk.fsyncs

    def hang_up(self, session: SessionId) -> None: ...

    def publish(self, event: events.Event) -> None: ...


def acknowledgement(subtask: int, checkpoint_id: CheckpointId) -> Ack:
    """What a subtask with one partition and one transaction says."""
    index = SubtaskIndex(subtask)
    handle = StateHandle(f"chk-{checkpoint_id}/subtask-{subtask}", DIGEST, 1_000_000, 10_000)
    position = SplitPosition(f"in[{subtask}]", subtask, [checkpoint_id * 1_000, "topic-id"])
    details = {
        "transactional_id": f"scale-1-{subtask}-{checkpoint_id % 3}",
        "producer_id": 1_000 + subtask,
        "producer_epoch": 0,
        "start_ms": 1_700_000_000_000,
        "partitions": [["out", subtask % 64]],
    }
    committable = Committable(f"scale-1-{subtask}-{checkpoint_id}", checkpoint_id, index, details)
    return Ack(checkpoint_id, SubtaskSnapshot.of(index, (position,), handle, (committable,)), 10.0, 5.0)


def one_checkpoint(jobs: Jobs, clock: ManualClock, subtasks: Subtasks, count: int, folder: Path) -> tuple[float, float]:
    """Play one checkpoint; return its CPU and wall seconds."""
    clock.advance(INTERVAL_MS)
    cpu, wall = time.thread_time(), time.perf_counter()
    jobs.tick()
    wanted = subtasks.triggered
    assert wanted is not None, "nothing was triggered"
    messages = [acknowledgement(number, wanted) for number in range(count)]
    cpu, wall = cpu + _building(messages, wanted, count), wall
    storing = time.thread_time(), time.perf_counter()
    for number in range(count):
        manifest = folder / JOB / manifest_path(wanted, SubtaskIndex(number))
        manifest.parent.mkdir(parents=True)
        manifest.write_bytes(MANIFEST)
    cpu, wall = cpu + time.thread_time() - storing[0], wall + time.perf_counter() - storing[1]
    subtasks.fsyncs_when_asked = subtasks.disk.fsyncs
    for number, message in enumerate(messages):
        jobs.take(JOB, (MessageReceived(SessionId(number), message),))
    assert subtasks.completed == wanted, "the checkpoint did not complete"
    for number in range(count):
        jobs.take(JOB, (MessageReceived(SessionId(number), Committed(wanted)),))
    return time.thread_time() - cpu, time.perf_counter() - wall


def _building(messages: list[Ack], wanted: CheckpointId, count: int) -> float:
    """Return the CPU seconds that making the messages takes, which are the subtasks' and not the coordinator's."""
    started = time.thread_time()
    assert len([acknowledgement(number, wanted) for number in range(count)]) == len(messages)
    return time.thread_time() - started


def measure(count: int, checkpoints: int, folder: Path) -> Cost:
    """Attach so many subtasks and play so many checkpoints."""
    disk = files.disk = CountingDisk()
    clock, subtasks = ManualClock(), Subtasks(disk)
    before = peak_memory_mb()
    jobs = Jobs(LocalStore(folder).within, clock, subtasks)
    jobs.start_attempt(JOB, StartAttempt(count, CheckpointSettings(INTERVAL_MS, 60_000), "none"))
    attempt = jobs.describe(JOB).attempt
    for number in range(count):
        index = SubtaskIndex(number)
        jobs.attach(JOB, Attached(SessionId(number), attempt, index, CheckpointId(0), False, number, "host"))
    times = [one_checkpoint(jobs, clock, subtasks, count, folder) for _ in range(checkpoints)]
    start = disk.fsyncs
    one_checkpoint(jobs, clock, subtasks, count, folder)
    cpu = statistics.median(cpu for cpu, _ in times)
    *_, reserved, completed, confirmed = sorted(folder.glob(f"{JOB}/ledger/*.json"))
    return Cost(
        subtasks=count,
        cpu_ms=cpu * 1e3,
        wall_ms=statistics.median(wall for _, wall in times) * 1e3,
        cpu_us_per_subtask=cpu * 1e6 / count,
        metadata_bytes=(folder / JOB / f"chk-{subtasks.completed}" / "metadata.json").stat().st_size,
        ledger_bytes=sum(path.stat().st_size for path in (reserved, completed, confirmed)),
        fsyncs=disk.fsyncs - start,
        fsyncs_to_complete=subtasks.fsyncs_when_completed - subtasks.fsyncs_when_asked,
        memory_mb=peak_memory_mb() - before,
    )


def peak_memory_mb() -> float:
    """The most that this process has had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured_apart(count: int, checkpoints: int) -> Cost:
    """Measure in a process that ends with it."""
    with (
        tempfile.TemporaryDirectory(prefix="twopc-scale-") as folder,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process,
    ):
        return process.submit(measure, count, checkpoints, Path(folder)).result()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subtasks", type=int, nargs="+", default=[1, 10, 100, 1_000, 10_000])
    parser.add_argument("--checkpoints", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    costs = []
    print(f"{'subtasks':>9}{'CPU ms':>10}{'wall ms':>10}{'CPU us each':>13}{'metadata kB':>13}", end="")
    print(f"{'ledger kB':>11}{'fsyncs':>8}{'of them to complete':>21}{'memory MB':>11}")
    for count in options.subtasks:
        cost = measured_apart(count, options.checkpoints)
        costs.append(cost)
        print(
            f"{cost.subtasks:>9,}{cost.cpu_ms:>10.2f}{cost.wall_ms:>10.2f}{cost.cpu_us_per_subtask:>13.1f}"
            f"{cost.metadata_bytes / 1e3:>13.1f}{cost.ledger_bytes / 1e3:>11.1f}"
            f"{cost.fsyncs:>8}{cost.fsyncs_to_complete:>21}{cost.memory_mb:>11.1f}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")


if __name__ == "__main__":
    main()
