"""The options that `twopc run` hands on to Spark, in the words of spark-submit."""

from __future__ import annotations

from typing import Annotated

import typer

from twopc.errors import ConfigurationError


def spark_conf(
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's, spark....; may be given again."),
    ] = None,
) -> dict[str, str] | None:
    """The option for settings of Spark's own; for `twopc.cli.shared_options.shared_options`."""
    return dict(map(_named_value, conf)) if conf else None


def _named_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        # Not the whole text: what has no name may be a secret.
        raise ConfigurationError(f"--conf wants NAME=VALUE, as spark.executor.memory=2g, and {name!r} has no value")
    return name.strip(), value.strip()
