"""The versions of twopc and of what it stands on, as they are at work here."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from twopc.compiled import problems
from twopc.errors import ConfigurationError
from twopc.java import find_java, java_version
from twopc.kafka.native import in_use
from twopc.variables import NATIVE

_PACKAGES = {
    "twopc": "twopc-streams",
    "pyspark": "pyspark",
    "confluent-kafka": "confluent-kafka",
    "rocksdict": "rocksdict",
    "grpcio": "grpcio",
}


def versions() -> dict[str, str | None]:
    """Return each version by its name, None for what is missing."""
    found = {name: _package(package) for name, package in _PACKAGES.items()}
    found |= {"python": platform.python_version(), "java": _java(), "records": in_use()}
    turned_off = os.environ.get(NATIVE) == "0"
    return found | {"compiled": f"turned off ({NATIVE}=0)" if turned_off else "; ".join(problems()) or "all parts"}


def _package(name: str) -> str | None:
    try:
        return version_of(name)
    except PackageNotFoundError:
        return None


def _java() -> str | None:
    try:
        return java_version(find_java())
    except ConfigurationError:
        return None
