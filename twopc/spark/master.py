"""The Spark master of a run: one that is there already goes before our own default."""

from __future__ import annotations

import os

from pyspark import SparkConf, SparkContext

from twopc.errors import ConfigurationError

KINDS = ("local", "spark://", "yarn", "k8s://")
DEFAULT_MASTER = "local[*]"

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that spark-submit started: the JVM is there, and knows what was submitted where."""


def master_of(setting: str) -> str:
    """Return the master of the session that this process has, else the one asked for, else spark-submit's."""
    context = SparkContext._active_spark_context
    if context is not None:
        return str(context.master)
    return checked_master(setting or _submitted_master() or DEFAULT_MASTER)


def checked_master(master: str) -> str:
    """Return the master if Spark knows its kind; else its JVM would say so, in a traceback."""
    if not master.startswith(KINDS):
        raise ConfigurationError(
            f"there is no Spark master {master!r}: give --master 'local[2]', spark://HOST:PORT, yarn or k8s://..."
        )
    return master


def is_local(master: str) -> bool:
    """Whether all workers under this master are on this machine."""
    return master.startswith("local")


def _submitted_master() -> str | None:
    if SUBMITTED not in os.environ:
        return None
    SparkContext._ensure_initialized()
    return SparkConf().get("spark.master")
