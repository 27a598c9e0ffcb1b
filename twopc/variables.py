"""Variables of the environment that begin with TWOPC_: one that nothing reads is named, with what it may have meant."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache

PREFIX = "TWOPC_"

NATIVE = "TWOPC_NATIVE"
"""`0` turns what is compiled off: records and loops take their paths in Python."""

OTHERS = frozenset(
    {
        "TWOPC_BROKER_DIR",
        "TWOPC_CACHE_DIR",
        "TWOPC_COORDINATOR_TOKEN_FILE",
        "TWOPC_CRASH_POINT",
        "TWOPC_CRASH_POINTS_REACHED",
        "TWOPC_DEBUG",
        NATIVE,
        "TWOPC_SCHEMA_REGISTRY_CONFIG",
        "TWOPC_SCHEMA_REGISTRY_URL",
        "TWOPC_SIMULATION_FIRST",
        "TWOPC_STATE_DIR",
    }
)
"""Those that are no setting of a run."""

log = logging.getLogger(__name__)


def name_unknown(settings: Iterable[str]) -> None:
    """Warn of each variable that is neither one of these nor one of the others, once in a process."""
    known = frozenset(settings) | OTHERS
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX) and variable not in known:
            _warn(variable, known)


@cache
def _warn(variable: str, known: frozenset[str]) -> None:
    near = get_close_matches(variable.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known], n=1)
    hint = f": did you mean {PREFIX}{near[0]}?" if near else ""
    log.warning("nothing reads the environment variable %s%s", variable, hint)
