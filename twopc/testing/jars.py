"""Jars of servers in the user's cache: fetched once with the Ivy that PySpark ships, trusted by their SHA-256 only.

Invariants:

- A folder under its final name was complete and correct when it got that name: fetch beside it, verify, rename.
- Nothing is started from jars that were not compared with the committed list just before (50 ms for all of them).
- One process fetches at a time; the others wait for it and find its result.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from twopc.errors import ConfigurationError, Unavailable
from twopc.java import find_java
from twopc.spark_home import spark_jars
from twopc.user_folders import cache_folder, made_cache_folder

logger = logging.getLogger(__name__)

KAFKA_VERSION = "4.3.1"
FETCH_TIMEOUT_S = 900
_FETCHED = (".jar", ".gz")

_IVY_MODULE = """\
<ivy-module version="2.0">
  <info organisation="twopc" module="local-server"/>
  <dependencies>
{}
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class Jars:
    """The jars of a server: its folder's name, what people call it, how large it is, and where all of it is listed.

    `digests` is the committed list, as `sha256sum` writes and checks it; `dependencies` are Ivy's.
    """

    name: str
    title: str
    megabytes: int
    dependencies: str
    digests: Path


KAFKA = Jars(
    f"kafka-{KAFKA_VERSION}",
    f"Apache Kafka {KAFKA_VERSION}",
    44,
    f'''\
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="*->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4" conf="*->default"/>''',
    Path(__file__).with_name(f"kafka-{KAFKA_VERSION}.sha256"),
)


def jars_folder(jars: Jars = KAFKA) -> Path:
    """The folder where these jars are, or will be."""
    return cache_folder() / jars.name


def ensure_jars(jars: Jars = KAFKA) -> Path:
    """The folder of verified jars, fetched first where they are missing or damaged."""
    folder = jars_folder(jars)
    expected = expected_digests(jars)
    if differences(folder, expected) is None:
        return folder
    made_cache_folder()
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        damage = differences(folder, expected)
        if damage is not None:
            if folder.exists():
                logger.warning("fetching the jars of %s again: in %s, %s", jars.title, folder, damage)
            _fetch(jars, folder, expected)
    return folder


def expected_digests(jars: Jars) -> Mapping[str, str]:
    """The committed list: SHA-256 by file name."""
    return {name: digest for digest, name in (line.split() for line in jars.digests.read_text().splitlines())}


def differences(folder: Path, expected: Mapping[str, str]) -> str | None:
    """The differences of the folder, in a few words; None when it holds the expected files and nothing else."""
    found = {path.name for path in folder.iterdir() if path.suffix in _FETCHED} if folder.is_dir() else set()
    if found != expected.keys():
        return f"{len(expected.keys() - found)} jars are missing and {len(found - expected.keys())} are unknown"
    for name, digest in expected.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                return f"{name} does not have the expected SHA-256"
    return None


def _fetch(jars: Jars, folder: Path, expected: Mapping[str, str]) -> None:
    arriving = folder.with_name(f"{folder.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir(parents=True)
    _run_ivy(jars, arriving)
    damage = differences(arriving, expected)
    if damage is not None:
        raise ConfigurationError(
            f"what was fetched as {jars.title} can't be trusted: {damage}; "
            f"delete {cache_folder()} and try again, from another network if it happens again"
        )
    shutil.rmtree(folder, ignore_errors=True)
    arriving.rename(folder)


def _run_ivy(jars: Jars, target: Path) -> None:
    log = cache_folder() / "ivy.log"
    module = target / "ivy.xml"
    module.write_text(_IVY_MODULE.format(jars.dependencies))
    pattern = f"{target}/[artifact]-[revision](-[classifier]).[ext]"
    # Not validated: a Maven classifier is an attribute of a namespace otherwise, whose name is an address.
    ivy = [str(_ivy_jar()), "-novalidate", "-ivy", str(module), "-cache", str(cache_folder() / "ivy")]
    command = [str(find_java()), "-jar", *ivy]
    logger.info("fetching %s, about %d MB, into %s", jars.title, jars.megabytes, target.parent)
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
            f"fetching {jars.title} {reason}: it is needed once, connect to a network and try again; "
            f"details are in {log}"
        )


def _ivy_jar() -> Path:
    jars = sorted(spark_jars().glob("ivy-*.jar"))
    if not jars:
        raise ConfigurationError("PySpark's jars/ivy-*.jar is not there: reinstall pyspark, then try again")
    return jars[-1]


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Be the only process that has this lock; others wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        # The kernel lets go of it when the process ends, however it ends: no stale lock to clean up.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
