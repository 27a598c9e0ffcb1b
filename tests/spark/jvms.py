"""Options for Spark's JVMs, which tests start often and give little to do: they compile as little as they can.

They load their classes from an archive beside PySpark's jars, which the first run of these tests on a machine makes:
so a JVM takes a quarter of its usual processor time until its first job has run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

from pyspark import SparkContext
from pyspark.sql import SparkSession

from twopc.class_archive import ClassArchive
from twopc.java import find_java
from twopc.spark_home import spark_jars
from twopc.testing.jars import exclusive

VARIABLE = "JDK_JAVA_OPTIONS"
#: A JVM does not look at TMPDIR.
LIGHT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={gettempdir()}")
#: What a JVM says of an archive that it can't use would stand in the output that Spark's scripts read.
SILENT = "-Xlog:disable"
LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # 15 s by default: a Python worker that starts beside other tiers may take longer.
    "spark.python.authenticate.socketTimeout": "2m",
}
START_SECONDS = 300


def light_options(work: Path) -> str:
    """The options as the environment says them; makes the archive in a folder for that where there is none."""
    jars = spark_jars()
    archive = ClassArchive(find_java(), jars)
    # Whoever comes first makes it, which takes two processors for half a minute.
    with exclusive(jars.with_name("classes.lock")):
        if not archive.use():
            _make(archive, work)
    return " ".join((*LIGHT, SILENT, *archive.use()))


def _make(archive: ClassArchive, work: Path) -> None:
    options = " ".join((*LIGHT, SILENT, *archive.make(work)))
    environment = os.environ | {VARIABLE: options, "PYSPARK_PYTHON": sys.executable}
    subprocess.run([sys.executable, __file__], env=environment, check=True, capture_output=True, timeout=START_SECONDS)
    archive.adopt(work)


def local_session(name: str, master: str, **settings: str) -> SparkSession:
    """A new session that is reached on loopback only, and says nothing."""
    builder = SparkSession.builder.appName(name).master(master)
    for setting, value in (LOCAL | settings).items():
        builder = builder.config(setting, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def main() -> None:
    """Have a JVM load what a job needs, and end in order."""
    session = local_session("twopc-classes", "local[2]")
    session.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id long", barrier=True).collect()
    gateway = SparkContext._gateway
    session.stop()
    assert gateway is not None
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main()
