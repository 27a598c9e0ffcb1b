"""The two ways in which a query has our sink."""

from __future__ import annotations

from enum import Enum


class Way(Enum):
    """The value is the word for it on a command line."""

    FUNCTION = "foreachBatch"
    FORMAT = "format"
