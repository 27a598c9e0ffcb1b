"""`twopc version`: what is at work here, for a person and for a bug report."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import typer

from twopc.cli.output import Output, OutputOption
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


def version(output: OutputOption = Output.TEXT) -> None:
    """Print the versions of twopc and of what it stands on.

    Example: twopc version -o json
    """
    found = {name: _package(package) for name, package in _PACKAGES.items()}
    found |= {"python": platform.python_version(), "java": _java(), "records": in_use()}
    turned_off = os.environ.get(NATIVE) == "0"
    found["compiled"] = f"turned off ({NATIVE}=0)" if turned_off else "; ".join(problems()) or "all parts"
    if output is Output.JSON:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        typer.echo(f"{name:<16} {value or 'missing'}")


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
