"""twopc itself, and the bare loop that it is measured against."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from peers.case import Case
from peers.operator_workloads import OPERATOR_WORKLOADS
from peers.system import Launch, Place, System
from twopc.kafka.native import VARIABLE
from twopc.scratch.job_file import write_job_file
from twopc.scratch.other_topics import rebound

HERE = Path(__file__).parents[1]
ROOT = HERE.parent
PACKAGES = ("twopc-streams", "confluent-kafka", "pyspark", "rocksdict")
JOB_FILES = {
    "upper": ROOT / "examples" / "upper.py",
    "count": ROOT / "examples" / "count_by_key.py",
    "keep_even": ROOT / "examples" / "keep_even.py",
    "keep_even_avro": HERE / "jobs" / "keep_even_avro.py",
    "upper_batches": HERE / "jobs" / "upper_batches.py",
}
OPERATOR_JOB_FILES = {name: HERE / "jobs" / f"{name}.py" for name in OPERATOR_WORKLOADS}
"""These name their topics themselves, by their environment."""


class Bare(System):
    """`bare_loop.py`: a process a subtask."""

    name = "bare"
    jobs = frozenset(JOB_FILES) - {"upper_batches"}
    settings = "the client settings of twopc.kafka.clients.client_config; consume(1000); state in a dict, never stored"

    def version(self) -> str:
        return f"confluent-kafka {version('confluent-kafka')}"

    def launch(self, case: Case, place: Place) -> Launch:
        argv = [sys.executable, str(HERE / "bare_loop.py"), "--bootstrap-servers", place.servers]
        argv += ["--source", place.source, "--target", place.target, "--job", case.job]
        argv += ["--subtasks", str(case.width), "--interval-seconds", str(case.interval_ms / 1000)]
        return Launch(argv, {"PYTHONPATH": str(ROOT)})


class Twopc(System):
    """`twopc run` on Spark, as a user runs it."""

    name = "twopc"
    jobs = frozenset(JOB_FILES | OPERATOR_JOB_FILES)
    settings = "twopc run --until-end --host spark --master local[n], everything else as it is by itself"
    host: ClassVar[str] = "spark"

    def version(self) -> str:
        return ", ".join(f"{package} {version(package)}" for package in PACKAGES)

    def launch(self, case: Case, place: Place) -> Launch:
        if case.job in OPERATOR_JOB_FILES:
            return self.launch_file(case, place, str(OPERATOR_JOB_FILES[case.job]))
        spec = str(JOB_FILES[case.job])
        topics = {"source-1": place.source, "sink-1": place.target}
        job = write_job_file(place.folder, rebound, spec, name=place.name, topics=topics)
        return self.launch_file(case, place, job)

    def launch_file(self, case: Case, place: Place, job: str) -> Launch:
        """Return the command for a job file that names its topics itself."""
        argv = [sys.executable, "-m", "twopc", "run", job, "--bootstrap-servers", place.servers, "--until-end"]
        argv += ["--host", self.host, "--master", f"local[{case.width}]", "--parallelism", str(case.width)]
        argv += ["--checkpoint-dir", str(place.folder / "checkpoints")]
        argv += ["--checkpoint-interval", f"{case.interval_ms}ms", "--quiet"]
        names = {"BENCHMARK_NAME": place.name, "BENCHMARK_SOURCE": place.source, "BENCHMARK_TARGET": place.target}
        names |= {"BENCHMARK_SECOND": place.second, "BENCHMARK_DEAD": place.dead}
        return Launch(argv, {"PYTHONPATH": str(ROOT)} | names)


class TwopcProcess(Twopc):
    """The same with each subtask a plain process, without Spark."""

    name = "twopc-process"
    settings = "twopc run --until-end --host process, everything else as it is by itself"
    host = "process"


class TwopcObjects(TwopcProcess):
    """The same, an object of confluent-kafka's for each record."""

    name = "twopc-objects"
    settings = f"{TwopcProcess.settings}, {VARIABLE}=0"

    def launch_file(self, case: Case, place: Place, job: str) -> Launch:
        """Return the same command, without the compiled part."""
        plain = super().launch_file(case, place, job)
        return Launch(plain.argv, {**plain.env, VARIABLE: "0"})
