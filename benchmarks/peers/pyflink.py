"""PyFlink, in an environment of its own: a Python function in Flink's chain."""

from __future__ import annotations

from pathlib import Path

from peers.case import Case
from peers.fetch import environment, jar_versions, jars, java, package_versions, packed, site_packages
from peers.system import PROGRAMS, Launch, Place, System

PROGRAM = "pyflink"
REQUIREMENTS = ("apache-flink==2.3.0", "setuptools<81")


def _python() -> Path:
    return environment("pyflink", *REQUIREMENTS)


class PyFlink(System):
    """In thread mode, the faster one; a few lines of Java keep the key, which PyFlink's own reader drops."""

    name = "pyflink"
    jobs = frozenset({"upper"})
    settings = "EXACTLY_ONCE sink, Python map in thread mode, bundles of 10,000 or 500 ms, object reuse"

    def prepare(self) -> None:
        java()
        _python()
        self._jar()

    def version(self) -> str:
        return f"{package_versions(_python(), 'apache-flink')}, {jar_versions(jars(PROGRAM), 'flink-connector-kafka')}"

    def launch(self, case: Case, place: Place) -> Launch:
        needed = ",".join(map(str, [self._jar(), *jars(PROGRAM).glob("*.jar")]))
        argv = [str(_python()), str(PROGRAMS / "pyflink_job.py"), case.job, place.servers, place.source, place.target]
        argv += [
            place.name,
            str(place.folder / "checkpoints"),
            str(case.width),
            str(case.interval_ms),
            "thread",
            needed,
        ]
        # In thread mode the interpreter inside the JVM finds its packages by this alone.
        return Launch(argv, {"PYTHONPATH": str(site_packages(_python()))})

    @staticmethod
    def _jar() -> Path:
        return packed(PROGRAM, jars(PROGRAM), site_packages(_python()) / "pyflink" / "lib")
