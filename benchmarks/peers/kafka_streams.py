"""Kafka Streams: one JVM, a thread a subtask."""

from __future__ import annotations

from peers.case import Case
from peers.fetch import classes, jar_versions, jars, java
from peers.operator_workloads import OPERATOR_WORKLOADS
from peers.system import Launch, Place, System

PROGRAM = "kafka_streams"


class KafkaStreams(System):
    """exactly_once_v2; state in a cached and logged RocksDB store, through the Processor API."""

    name = "kafka-streams"
    jobs = frozenset({"upper", "count"}) | OPERATOR_WORKLOADS.keys()
    settings = (
        "exactly_once_v2, G1, -Xmx2g, batch 1,000,000, linger 20 ms, max.poll.records 10,000; "
        "count: a RocksDB store, cached and logged"
    )

    def prepare(self) -> None:
        java()
        classes(PROGRAM, jars(PROGRAM))

    def version(self) -> str:
        return jar_versions(jars(PROGRAM), "kafka-streams", "kafka-clients", "rocksdbjni")

    def launch(self, case: Case, place: Place) -> Launch:
        found = jars(PROGRAM)
        argv = [java(), "-Xmx2g", "-XX:+UseG1GC", "-cp", f"{classes(PROGRAM, found)}:{found}/*", "KafkaStreamsJob"]
        argv += [case.job, place.servers, place.source, place.target, place.name, str(place.folder / "state")]
        return Launch([*argv, str(case.width), str(case.interval_ms), place.second, place.dead], ends=False)
