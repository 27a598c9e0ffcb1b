"""One job under drill: its topics, folders and processes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.counting.finished import FinishedJob
from tests.counting.numbered_input import NumberedInput
from tests.crash_cells.every_operator import CHANGES, DEAD, NAMES, TOLD
from tests.crash_cells.expected_output import changes, names
from twopc import events
from twopc.faults.armed_faults import ArmedFault, armed
from twopc.faults.driver import decode
from twopc.faults.points import VARIABLE
from twopc.faults.process import PATIENCE_SECONDS, ManagedProcess, await_true, is_stopped, start_coordinator
from twopc.testing.topics import create_topic, produce

E = TypeVar("E", bound=events.JobEvent)

PARTITIONS = 2
KEYS = 13
RECORDS = 6_000
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def numbered(records: int = RECORDS) -> NumberedInput:
    """The records of an input, by what they are."""
    return NumberedInput(tuple(b"k%d" % number for number in range(KEYS)), PARTITIONS, records)


def load_input(bootstrap_servers: str, topic: str) -> None:
    """Create and fill an input: numbered records, every key in one partition. Many jobs may read it."""
    create_topic(bootstrap_servers, topic, PARTITIONS)
    produce(bootstrap_servers, topic, numbered().writes())


def load_changes(bootstrap_servers: str, topic: str) -> None:
    """Create and fill what a job with every operator reads beside an input of this name."""
    create_topic(bootstrap_servers, _changes_of(topic), PARTITIONS)
    produce(bootstrap_servers, _changes_of(topic), changes(numbered()))
    create_topic(bootstrap_servers, _names_of(topic), PARTITIONS)
    produce(bootstrap_servers, _names_of(topic), names())


def _changes_of(topic: str) -> str:
    return f"{topic}-changes"


def _names_of(topic: str) -> str:
    return f"{topic}-names"


@dataclass
class Rig:
    """A job with output, checkpoints and events of its own, which reads an input that `load_input` has filled.

    `settings` are those of the job, `environment` is what its processes get besides; `patience_seconds` is how long
    anything may take that is waited for. `drained` says that the job was, so that nothing waits for its time any more.
    """

    bootstrap_servers: str
    folder: Path
    job: str
    input: str
    records: int = RECORDS
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    patience_seconds: float = PATIENCE_SECONDS
    drained: bool = False
    _processes: list[ManagedProcess] = field(default_factory=list)
    _logs: int = 0

    def __post_init__(self) -> None:
        self.temporary.mkdir(parents=True, exist_ok=True)
        # A user's file lies outside the package: Spark's workers get it by value.
        shutil.copyfile(Path(__file__).with_name("job.py"), self.job_file)

    @property
    def output(self) -> str:
        return f"{self.job}-out"

    @property
    def checkpoint_dir(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def marker(self) -> tuple[str, str]:
        """What every process of the job has in its environment."""
        return "DRILL_JOB", self.job

    @property
    def temporary(self) -> Path:
        """Where the workers make their folders."""
        return self.folder / "tmp"

    @property
    def job_file(self) -> Path:
        return self.folder / "job.py"

    @property
    def events_file(self) -> Path:
        return self.folder / "events.jsonl"

    @property
    def table(self) -> Path:
        """The folder of the second output, if there is one."""
        return self.folder / "table"

    @property
    def struck(self) -> Path:
        """The file in which a function names the process that was hit in it."""
        return self.folder / "struck"

    @property
    def told(self) -> str:
        """The topic in which every operator tells what it does, where the job has them."""
        return f"{self.job}-told"

    @property
    def dead_letters(self) -> str:
        return f"{self.job}-dead"

    @property
    def has_every_operator(self) -> bool:
        return TOLD in self.environment

    @property
    def outputs(self) -> tuple[str, ...]:
        """Every topic that the job writes to."""
        if not self.has_every_operator:
            return (self.output,)
        return self.output, self.told, self.dead_letters, f"{self.job}-by-rest-repartition"

    def add_every_operator(self) -> None:
        """Have the job do more than count: one operator of each kind; its input was given to `load_changes` too."""
        shutil.copy(Path(__file__).with_name("every_operator.py"), self.folder)
        self.environment |= {CHANGES: _changes_of(self.input), NAMES: _names_of(self.input)}
        self.environment |= {TOLD: self.told, DEAD: self.dead_letters}
        for topic in (self.told, self.dead_letters):
            create_topic(self.bootstrap_servers, topic)

    def add_table(self) -> None:
        """Have the job write to a table too, which has a global committer."""
        shutil.copy(EXAMPLES / "table_sink.py", self.folder)
        self.environment["DRILL_TABLE"] = str(self.table)

    def create_output(self) -> None:
        create_topic(self.bootstrap_servers, self.output, PARTITIONS)

    def driver(self, *arms: ArmedFault, **settings: str) -> ManagedProcess:
        """Start a driver with a coordinator inside, or one that dials where `coordinator` says."""
        command = [sys.executable, "-m", "tests.crash_cells.driver", str(self.job_file), str(self.events_file)]
        return self._start("driver", command, arms, self.settings | settings)

    def run(self, *arms: ArmedFault, **settings: str) -> ManagedProcess:
        """Start `twopc run` as a user does: no events, and no worker outlives its attempt."""
        command = [sys.executable, "-m", "twopc", "run", str(self.job_file), "--until-end", "--output", "json"]
        return self._start("run", command, arms, {"host": "process"} | self.settings | settings)

    def serve(self, *arms: ArmedFault) -> ManagedProcess:
        """Start `twopc run` as `run` does, to go on behind the end of the input too."""
        command = [sys.executable, "-m", "twopc", "run", str(self.job_file), "--output", "json"]
        return self._start("run", command, arms, {"host": "process"} | self.settings)

    def coordinator(self, port: int, *arms: ArmedFault) -> ManagedProcess:
        """Start a coordinator of its own, and return when it listens."""
        started = start_coordinator(
            self.checkpoint_dir, port, self._environment(arms, {}), self._log("coordinator"), self.patience_seconds
        )
        assert started.exit_code is None, f"the coordinator ended at once: {started.last_words()}"
        self._processes.append(started)
        return started

    def events(self, kind: type[E]) -> list[E]:
        """All of this class that any driver was told so far, in order."""
        if not self.events_file.exists():
            return []
        lines = self.events_file.read_text().splitlines(keepends=True)
        heard = [decode(line) for line in lines if line.endswith("\n")]
        return [event for event in heard if isinstance(event, kind)]

    def workers(self, attempt: int) -> set[int]:
        """The process ids of the workers that have attached to an attempt."""
        return {event.pid for event in self.events(events.SubtaskAttached) if event.attempt == attempt}

    def has_happened(self, arm: ArmedFault) -> bool:
        return arm.has_happened(self.folder)

    def await_arm(self, arm: ArmedFault) -> int:
        """Wait until an armed point was reached; return the process id that acted there."""
        self.await_true(lambda: self.has_happened(arm), f"{arm.point.name} was not reached")
        return int(arm.once(self.folder).read_text())

    def await_stopped(self, arm: ArmedFault) -> int:
        """Wait until a process has stopped itself at the point; return its id."""
        pid = self.await_arm(arm)
        self.await_true(lambda: is_stopped(pid), f"process {pid} did not stop at {arm.point.name}")
        return pid

    def release(self, arm: ArmedFault) -> None:
        """Let go of whoever is held."""
        arm.release(self.folder).touch()

    def await_completed_after(self, attempt: int) -> None:
        """Wait until an attempt later than this one has completed a checkpoint."""
        self.await_true(
            lambda: any(event.attempt > attempt for event in self.events(events.CheckpointCompleted)),
            f"no attempt after {attempt} completed a checkpoint",
        )

    def await_true(self, condition: Callable[[], bool], complaint: str) -> None:
        """Wait until something holds; complain at once where all processes that could bring it about have ended."""

        def holds() -> bool:
            # In this order: the last that a process does may be what is waited for.
            never = self._has_ended()
            held = condition()
            assert held or not never, f"{complaint}, and each process has ended: " + "\n".join(self.logs())
            return held

        await_true(holds, complaint, self.patience_seconds)

    def _has_ended(self) -> bool:
        """Whether each process of the job has exited; the workers of one that was killed may live on."""
        codes = [process.exit_code for process in self._processes]
        return bool(codes) and all(code is not None and code >= 0 for code in codes)

    @property
    def attempt(self) -> int:
        """The greatest attempt that a driver was told of."""
        return max((event.attempt for event in self.events(events.JobEvent)), default=0)

    @property
    def completed(self) -> int:
        """The greatest checkpoint that completed, as far as a driver was told."""
        return max((event.checkpoint_id for event in self.events(events.CheckpointCompleted)), default=0)

    @property
    def finished(self) -> FinishedJob:
        """What the job left, for a judge."""
        work = self.folder / "judged"
        return FinishedJob(
            self.bootstrap_servers, self.checkpoint_dir, self.job, self.input, self.output, numbered(self.records), work
        )

    def logs(self) -> Iterator[str]:
        """The end of what each process logged, for a person who has to find out why a drill failed."""
        for log in sorted(self.folder.glob("*.log")):
            yield f"== {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-30:])

    def _start(
        self, kind: str, command: list[str], arms: tuple[ArmedFault, ...], settings: dict[str, str]
    ) -> ManagedProcess:
        started = ManagedProcess(command, self._environment(arms, settings), self._log(kind), self.patience_seconds)
        self._processes.append(started)
        return started

    def _log(self, kind: str) -> Path:
        """Where the next process says what it does."""
        self._logs += 1
        return self.folder / f"{self._logs}-{kind}.log"

    def _environment(self, arms: tuple[ArmedFault, ...], settings: dict[str, str]) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        environment |= {
            self.marker[0]: self.marker[1],
            "DRILL_INPUT": self.input,
            "DRILL_OUTPUT": self.output,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "TWOPC_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "TWOPC_CHECKPOINT_DIR": str(self.checkpoint_dir),
            "TWOPC_PARALLELISM": str(PARTITIONS),
            "TWOPC_CHECKPOINT_INTERVAL": "100ms",
            "TWOPC_CHECKPOINT_TIMEOUT": "10s",
            # The job's state is small, and most drills are about what is stored in files.
            "TWOPC_CHECKPOINT_INLINE_BYTES": "0",
            "TWOPC_RESTART_DELAY": "50ms",
            "TWOPC_RESTART_DELAY_MAX": "200ms",
            VARIABLE: armed(arms, self.folder),
        }
        environment |= self.environment
        environment |= {f"TWOPC_{name.upper()}": value for name, value in settings.items()}
        return environment
