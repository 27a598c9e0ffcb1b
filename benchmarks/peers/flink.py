"""Apache Flink: a mini-cluster in one JVM."""

from __future__ import annotations

from peers.case import Case
from peers.fetch import classes, jar_versions, jars, java
from peers.operator_workloads import OPERATOR_WORKLOADS
from peers.system import Launch, Place, System

PROGRAM = "flink"
OPENED = ("java.lang", "java.util", "java.util.concurrent")
"""What Flink's own start script opens, as far as a mini-cluster needs it."""


class Flink(System):
    """A bounded Kafka source and an exactly-once Kafka sink."""

    name = "flink"
    jobs = frozenset({"upper", "count"}) | OPERATOR_WORKLOADS.keys()
    settings = (
        "EXACTLY_ONCE sink, checkpoints to local files, object reuse, -Xmx2g, batch 1,000,000, linger 20 ms; "
        "count: RocksDB, incremental"
    )

    def prepare(self) -> None:
        java()
        classes(PROGRAM, jars(PROGRAM))

    def version(self) -> str:
        return jar_versions(jars(PROGRAM), "flink-runtime", "flink-connector-kafka", "kafka-clients", "frocksdbjni")

    def launch(self, case: Case, place: Place) -> Launch:
        found = jars(PROGRAM)
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        argv = [java(), "-Xmx2g", *opened, "-cp", f"{classes(PROGRAM, found)}:{found}/*", "FlinkJob"]
        argv += [case.job, place.servers, place.source, place.target, place.name, str(place.folder / "checkpoints")]
        return Launch([*argv, str(case.width), str(case.interval_ms), place.second, place.dead])
