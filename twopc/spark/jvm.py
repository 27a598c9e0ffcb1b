"""Starts Spark's JVM with its standard error in our hands: what it says reaches the user, but for what it always says.

The standard error of the JVM is also that of its Python workers, so a user's `print(..., file=sys.stderr)` comes this
way, and a live view on the terminal is not written over.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

ALWAYS_SAID = ("WARNING: Using incubator modules: jdk.incubator.vector",)
"""Notices of the JVM about how Spark's own launcher starts it; no option turns them off."""


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM that the next SparkContext of this process will use; do nothing where there is one."""
    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    reading, writing = os.pipe()
    try:
        gateway = launch_gateway(conf, popen_kwargs={"stderr": writing})  # type: ignore[no-untyped-call]
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    SparkContext._gateway = gateway
    SparkContext._jvm = gateway.jvm
    threading.Thread(target=_pass_on, args=(reading,), name="twopc-jvm-stderr", daemon=True).start()


def _pass_on(reading: int) -> None:
    with os.fdopen(reading, "r", errors="replace") as lines:
        for line in lines:
            if line.rstrip() not in ALWAYS_SAID:
                sys.stderr.write(line)
                sys.stderr.flush()
