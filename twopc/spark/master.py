"""The Spark master of a run: one that is there already goes before our own default."""

from __future__ import annotations

import os
import re

from pyspark import SparkConf, SparkContext

from twopc.errors import ConfigurationError, Unavailable
from twopc.reachable import NotReachable, await_any

KINDS = ("local", "spark://", "yarn", "k8s://")
STANDALONE = "spark://"
DEFAULT_MASTER = "local[*]"

REACH_SECONDS = 5.0

_STANDALONE_MASTER = re.compile(r"spark://[^,:/]+:\d+(,[^,:/]+:\d+)*|spark://\[[^]]+\]:\d+")

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
    if master.startswith(STANDALONE) and not _STANDALONE_MASTER.fullmatch(master):
        raise ConfigurationError(f"Spark master {master!r} names no address: write spark://HOST:PORT, as in its log")
    return master


def await_reachable(master: str, seconds: float = REACH_SECONDS) -> None:
    """Return when an address of a standalone master accepts connections; raise Unavailable if none does in time.

    Spark itself tries for a minute, and then says only that its context was stopped. Other kinds of masters have no
    address that is known here.
    """
    if not master.startswith(STANDALONE):
        return
    parts = [each.rpartition(":") for each in master.removeprefix(STANDALONE).split(",")]
    try:
        await_any({f"{host}:{port}": (host, int(port)) for host, _, port in parts}, seconds)
    except NotReachable as reason:
        raise Unavailable(f"Nobody accepts connections there ({reason})") from None


def is_local(master: str) -> bool:
    """Whether all workers under this master are on this machine."""
    return master.startswith("local")


def _submitted_master() -> str | None:
    if SUBMITTED not in os.environ:
        return None
    SparkContext._ensure_initialized()
    return SparkConf().get("spark.master")
