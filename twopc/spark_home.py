"""The home of pip's PySpark: its programs, and the jars that servers for tests run on too."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from twopc.errors import ConfigurationError


def spark_home() -> Path:
    """The folder of pip's PySpark; raise ConfigurationError if there is none."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError("PySpark is not installed in this environment: install pyspark, then try again")
    return Path(spec.origin).parent


def spark_jars() -> Path:
    """The folder of its jars."""
    return spark_home() / "jars"
