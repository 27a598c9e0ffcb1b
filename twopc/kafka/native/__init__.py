"""The compiled part, where it was built and fits librdkafka: whole batches between confluent-kafka's clients and lists.

confluent-kafka makes an object for each record that it reads, and is called for each that it writes. `_batches` (the
files in C here) moves a batch by one call, through the same clients: they stay confluent-kafka's, which makes them,
polls them, and speaks of all that goes wrong. Everything there has a path without it, with the same results.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from types import ModuleType
from typing import Any

import confluent_kafka

from twopc.compiled import BATCHES, NotCompiled, OldBuild, compiled
from twopc.variables import NATIVE

log = logging.getLogger(__name__)

VARIABLE = NATIVE
"""`0` in the environment turns the compiled part off."""

KNOWN_VERSIONS = frozenset({(2, 16)})
"""The versions of librdkafka that the tests have passed with, major and minor."""


@cache
def batches() -> ModuleType | None:
    """Return the compiled module; None where records go one by one. Why, the log says once, unless it is wanted."""
    module, why_not = _found()
    if why_not:
        log.warning("records go through confluent-kafka one by one, with the same results: %s", why_not)
    return module


def in_use() -> str:
    """Return which path records take, for people."""
    return "confluent-kafka, one by one" if batches() is None else "compiled, by batches"


def settings_for(number: int) -> dict[str, Any]:
    """Return the settings of a client of confluent-kafka that a reader or writer with this number joins."""
    module = batches()
    assert module is not None, "there is no compiled part"
    return {"plugin.library.paths": module.__file__, module.CLIENT_SETTING: str(number)}


def _found() -> tuple[ModuleType | None, str]:
    """Return the module, and why it can't be had where it was not turned off."""
    if os.environ.get(VARIABLE) == "0":
        return None, ""
    try:
        module = compiled(BATCHES)
    except OldBuild:
        return None, ""
    except NotCompiled as error:
        return None, str(error)
    if (path := str(module.__file__)) != path.replace(";", "").encode(errors="ignore").decode():
        return None, f"librdkafka can't be told its path, {path!r}, which has a semicolon or is not UTF-8"
    try:
        version = module.load(confluent_kafka.cimpl.__file__)
    except ImportError as error:
        return None, f"librdkafka can't be called: {error}"
    if (version >> 24, version >> 16 & 0xFF) not in KNOWN_VERSIONS:
        known = ", ".join(f"{major}.{minor}" for major, minor in sorted(KNOWN_VERSIONS))
        return (
            None,
            f"librdkafka {confluent_kafka.libversion()[0]} is not known to the compiled part, which knows {known}",
        )
    return module, ""
