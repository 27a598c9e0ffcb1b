"""Writes a command's answer: for a person, or as JSON for a script."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from twopc.cli.setting_options import option_of
from twopc.errors import ConfigurationError


class Output(StrEnum):
    """The forms that `-o` can choose."""

    TEXT = "text"
    JSON = "json"


class JobOutput(StrEnum):
    """The forms that `-o` can choose where a job may be shown."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"


class LogLevel(StrEnum):
    """The levels that `--log-level` can choose."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How the answer is written.")]
JobOutputOption = Annotated[
    JobOutput, typer.Option("--output", "-o", help="How the answer is written; mermaid with --explain.")
]
LogLevelOption = Annotated[
    LogLevel | None,
    option_of("log_level"),
]
LogFormatOption = Annotated[
    Output | None,
    option_of("log_format"),
]


def check_target(option: str, path: Path | None) -> None:
    """Raise ConfigurationError if a report can't be written there: said before what is reported has taken its time."""
    if path is None:
        return
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigurationError(f"{option} {path} can't be written: name a file in a folder that is there")
