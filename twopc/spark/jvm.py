"""Starts Spark's JVM with its standard error in our hands: what it says reaches the user, but for what it always says.

The standard error of the JVM is also that of its Python workers, so a user's `print(..., file=sys.stderr)` comes this
way, and a live view on the terminal is not written over.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from twopc.logs import pass_on

log = logging.getLogger(__name__)

ALWAYS_SAID = ("WARNING: Using incubator modules: jdk.incubator.vector",)
"""Notices of the JVM about how Spark's own launcher starts it; no option turns them off."""


TRIES = 3


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM that the next SparkContext of this process will use; do nothing where there is one.

    A JVM that ends before it could be reached, as happens now and then on a busy machine, is started again.
    """
    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    for number in range(1, TRIES + 1):
        try:
            _launch(conf)
            break
        except PySparkRuntimeError as error:
            if number == TRIES:
                raise
            log.warning("Spark's JVM did not start, trying again: %s", error)


def _launch(conf: SparkConf) -> None:
    reading, writing = os.pipe()
    # It reads from the start on: a JVM that fails says why.
    pass_on(os.fdopen(reading, "r", errors="replace"), without=ALWAYS_SAID)
    try:
        # Standard output belongs to the answer of the command.
        streams = {"stdout": writing, "stderr": writing}
        gateway = launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    SparkContext._gateway = gateway
    SparkContext._jvm = gateway.jvm
