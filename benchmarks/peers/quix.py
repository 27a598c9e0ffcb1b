"""Quix Streams, in an environment of its own: one process a subtask."""

from __future__ import annotations

from peers.case import Case
from peers.fetch import environment, package_versions
from peers.operator_workloads import OPERATOR_WORKLOADS
from peers.system import PROGRAMS, Launch, Place, System

REQUIREMENT = "quixstreams==3.28.1"
SPAWN = """
import subprocess, sys
width, folder = int(sys.argv[1]), sys.argv[2]
processes = [subprocess.Popen([*sys.argv[3:-1], f"{folder}/{n}", sys.argv[-1]]) for n in range(width)]
sys.exit(max(process.wait() for process in processes))
"""


class Quix(System):
    """One application, as many processes of it as the case is wide."""

    name = "quix"
    jobs = frozenset({"upper", "count"}) | OPERATOR_WORKLOADS.keys()
    settings = "exactly-once, serdes of bytes, changelogs on, consumer_poll_timeout 0.1, fetch.queue.backoff.ms 5"

    def prepare(self) -> None:
        environment("quix", REQUIREMENT)

    def version(self) -> str:
        return package_versions(environment("quix", REQUIREMENT), "quixstreams", "confluent-kafka", "rocksdict")

    def launch(self, case: Case, place: Place) -> Launch:
        python = str(environment("quix", REQUIREMENT))
        job = [python, str(PROGRAMS / "quix_job.py"), case.job, place.servers, place.source, place.target]
        job += [place.second, place.dead, place.name]
        return Launch(
            [python, "-c", SPAWN, str(case.width), str(place.folder), *job, str(case.interval_ms)], ends=False
        )
