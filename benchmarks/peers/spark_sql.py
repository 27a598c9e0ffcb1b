"""Spark Structured Streaming with its own Kafka connector, in an environment of its own."""

from __future__ import annotations

from peers.case import Case
from peers.fetch import environment, jar_versions, jars, java, package_versions, site_packages
from peers.system import PROGRAMS, Launch, Place, System

PROGRAM = "spark"
REQUIREMENT = "pyspark==4.2.0"
"""The newest that the connector is published for."""


class SparkSql(System):
    """Built-in `upper`; no Python per record."""

    name = "spark"
    guarantee = "at least once"
    jobs = frozenset({"upper"})
    settings = "at least once; trigger each commit interval, local[n], driver 2g, batch 1,000,000, linger 20 ms"

    def prepare(self) -> None:
        java()
        environment("spark", REQUIREMENT)
        jars(PROGRAM)

    def version(self) -> str:
        spark = package_versions(environment("spark", REQUIREMENT), "pyspark")
        return f"{spark}, {jar_versions(jars(PROGRAM), 'spark-sql-kafka-0-10_2.13', 'kafka-clients')}"

    def launch(self, case: Case, place: Place) -> Launch:
        python, found = environment("spark", REQUIREMENT), jars(PROGRAM)
        argv = [str(python), str(PROGRAMS / "spark_job.py"), case.job, place.servers, place.source, place.target]
        argv += [str(place.folder), str(case.width), str(case.interval_ms), ",".join(map(str, found.glob("*.jar")))]
        own = {"PYSPARK_PYTHON": str(python), "SPARK_HOME": str(site_packages(python) / "pyspark"), "PYTHONPATH": ""}
        return Launch(argv, own, ends=False)
