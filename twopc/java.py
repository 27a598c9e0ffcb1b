"""Finds the Java that runs Spark and the local broker, and refuses one that is missing or too old."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from twopc.errors import ConfigurationError

OLDEST_VERSION = 17

_HOW_TO = f"install Java {OLDEST_VERSION} or newer and put it on PATH, or set JAVA_HOME to its folder"


def find_java() -> Path:
    """The `java` of JAVA_HOME, else of PATH, once it is known to be new enough."""
    java = locate_java()
    version = java_version(java)
    if _major(version) < OLDEST_VERSION:
        raise ConfigurationError(f"{java} is Java {version}, too old for Kafka and Spark: {_HOW_TO}")
    return java


def java_version(java: Path) -> str:
    """The version that `java -version` reports, such as 17.0.15."""
    try:
        # In a session of its own: Ctrl-C at the terminal is meant for us, and would silence it.
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{java} does not run ({error}): {_HOW_TO}") from error
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    if found is None:
        raise ConfigurationError(f"{java} -version does not name a version: {_HOW_TO}")
    return found.group(1)


def locate_java() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise ConfigurationError(f"JAVA_HOME is {home}, but there is no {java}: {_HOW_TO}")
        return java
    found = shutil.which("java")
    if found is None:
        raise ConfigurationError(f"no java found: {_HOW_TO}")
    return Path(found)


def _major(version: str) -> int:
    first, _, rest = version.partition(".")
    # Up to Java 8 the versions were written 1.8.0.
    text = rest.partition(".")[0] if first == "1" else first
    digits = re.match(r"\d+", text)
    return int(digits.group()) if digits else 0
