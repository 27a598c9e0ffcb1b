"""Apache Kafka's jars in the user's cache: fetched once with the Ivy that PySpark ships, trusted by SHA-256 only.

Invariants:

- A folder under its final name was complete and correct when it got that name: fetch beside it, verify, rename.
- Nothing is started from jars that were not compared with the committed list just before (50 ms for all of them).
- One process fetches at a time; the others wait for it and find its result.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from twopc.errors import ConfigurationError, Unavailable
from twopc.java import find_java

logger = logging.getLogger(__name__)

KAFKA_VERSION = "4.3.1"
FETCH_TIMEOUT_S = 900

_IVY_MODULE = f"""\
<ivy-module version="2.0">
  <info organisation="twopc" module="local-broker"/>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="*->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4" conf="*->default"/>
  </dependencies>
</ivy-module>
"""


def cache_dir() -> Path:
    """Where downloads are kept between runs: TWOPC_CACHE_DIR, else the user's cache folder."""
    chosen = os.environ.get("TWOPC_CACHE_DIR")
    return Path(chosen).absolute() if chosen else platformdirs.user_cache_path("twopc")


def jars_folder() -> Path:
    """Where Kafka's jars are, or will be."""
    return cache_dir() / f"kafka-{KAFKA_VERSION}"


def ensure_jars() -> Path:
    """The folder of Kafka's verified jars, fetched first where they are missing or damaged."""
    folder = jars_folder()
    expected = expected_digests()
    if differences(folder, expected) is None:
        return folder
    with _exclusive(folder.with_name(f"{folder.name}.lock")):
        damage = differences(folder, expected)
        if damage is not None:
            if folder.exists():
                logger.warning("fetching Kafka's jars again: in %s, %s", folder, damage)
            _fetch(folder, expected)
    return folder


def expected_digests() -> Mapping[str, str]:
    """The committed list: SHA-256 by file name, as `sha256sum` writes and checks it."""
    lines = Path(__file__).with_name(f"kafka-{KAFKA_VERSION}.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def differences(folder: Path, expected: Mapping[str, str]) -> str | None:
    """What is wrong with the folder, in a few words; None when it holds the expected files and nothing else."""
    found = {path.name for path in folder.glob("*.jar")} if folder.is_dir() else set()
    if found != expected.keys():
        return f"{len(expected.keys() - found)} jars are missing and {len(found - expected.keys())} are unknown"
    for name, digest in expected.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                return f"{name} does not have the expected SHA-256"
    return None


def _fetch(folder: Path, expected: Mapping[str, str]) -> None:
    arriving = folder.with_name(f"{folder.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir(parents=True)
    _run_ivy(arriving)
    damage = differences(arriving, expected)
    if damage is not None:
        raise ConfigurationError(
            f"what was fetched as Apache Kafka {KAFKA_VERSION} can't be trusted: {damage}; "
            f"delete {cache_dir()} and try again, from another network if it happens again"
        )
    shutil.rmtree(folder, ignore_errors=True)
    arriving.rename(folder)


def _run_ivy(target: Path) -> None:
    log = cache_dir() / "ivy.log"
    module = target / "ivy.xml"
    module.write_text(_IVY_MODULE)
    pattern = f"{target}/[artifact]-[revision](-[classifier]).[ext]"
    command = [str(find_java()), "-jar", str(_ivy_jar()), "-ivy", str(module), "-cache", str(cache_dir() / "ivy")]
    logger.info("fetching Apache Kafka %s, about 44 MB, into %s", KAFKA_VERSION, target.parent)
    with log.open("wb") as output:
        try:
            ended = subprocess.run(
                [*command, "-confs", "default", "-retrieve", pattern],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=FETCH_TIMEOUT_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = None
    if ended != 0:
        reason = "took too long" if ended is None else "failed"
        raise Unavailable(
            f"fetching Apache Kafka {KAFKA_VERSION} {reason}: it is needed once, connect to a network and try again; "
            f"details are in {log}"
        )


def _ivy_jar() -> Path:
    spark = importlib.util.find_spec("pyspark")
    places = spark.submodule_search_locations or [] if spark is not None else []
    jars = sorted(jar for place in places for jar in Path(place).glob("jars/ivy-*.jar"))
    if not jars:
        raise ConfigurationError("PySpark's jars/ivy-*.jar is not there: reinstall pyspark, then try again")
    return jars[-1]


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        # The kernel lets go of it when the process ends, however it ends: no stale lock to clean up.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
