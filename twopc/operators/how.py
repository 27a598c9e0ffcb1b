"""Whose records a join puts out, where nothing of the other side met them."""

from __future__ import annotations

from typing import Any, Literal, get_args

from twopc.errors import ConfigurationError
from twopc.operators.functions import check_callable, check_plain

How = Literal["inner", "left"]
"""A join with a table: nobody's, or those of the stream, joined with None."""

HowBoth = Literal["inner", "left", "outer"]
"""A join of two equals: nobody's, the left one's, or those of both."""


def check_how(join: str, how: Any, known: Any) -> None:
    """Refuse a `how` that is none of this kind."""
    if how not in get_args(known):
        raise ConfigurationError(f"how of {join} is one of {', '.join(map(repr, get_args(known)))}, not {how!r}")


def check_join(join: str, function: Any, how: Any, known: Any) -> None:
    """Refuse a join by what is no plain function, or with a `how` that is none of this kind."""
    check_callable(join, function)
    check_plain(join, function)
    check_how(join, how, known)
