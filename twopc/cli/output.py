"""How a command writes its answer: for a person, or as JSON for a script."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Output(StrEnum):
    """The forms that `-o` can choose."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How the answer is written.")]
