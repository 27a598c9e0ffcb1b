"""The options that `twopc run` hands on to Spark, in the words of spark-submit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from twopc.errors import ConfigurationError


def spark_options(
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's, spark....; may be given again."),
    ] = None,
    py_files: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_PY_FILES",
            metavar="FILES",
            help="Modules that the job imports and its folder does not have: .py, .zip, .whl (comma-separated).",
        ),
    ] = None,
    archives: Annotated[
        str | None,
        typer.Option(
            envvar="TWOPC_ARCHIVES",
            metavar="FILES",
            help="Archives that are unpacked where each subtask runs, FILE#FOLDER (comma-separated).",
        ),
    ] = None,
) -> dict[str, Any]:
    """Return the settings of a run that these are."""
    return {
        "spark_conf": dict(map(_named_value, conf)) if conf else None,
        "py_files": py_files,
        "archives": archives,
    }


def _named_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        # Not the whole text: what has no name may be a secret.
        raise ConfigurationError(f"--conf wants NAME=VALUE, as spark.executor.memory=2g, and {name!r} has no value")
    return name.strip(), value.strip()
