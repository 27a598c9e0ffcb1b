"""The parts of this package that are compiled: found where they were built from the sources that are there.

A build keeps a mark of its C sources (`twopc.build_mark`). In a clone the sources stand beside it, so one that is older
than they are, after a pull without `make setup`, is known, and left alone: what Python expects of it may be something
else by now. An installed package has no sources to compare with, and is of one piece.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from twopc.build_mark import mark_of
from twopc.variables import NATIVE

BATCHES, LOOPS, AVRO = "twopc.kafka.native._batches", "twopc.operators._loops", "twopc.serde._avro"
PARTS = (BATCHES, LOOPS, AVRO)

log = logging.getLogger(__name__)


class NotCompiled(ImportError):
    """A compiled part can't be had; the message says why, and what to do about it."""


class OldBuild(NotCompiled):
    """It was built from other sources than are there now; the log has said so."""


def compiled(name: str) -> ModuleType:
    """Return a compiled module of this package; raise NotCompiled. Of an old build the log speaks, once."""
    found = _found(name)
    if isinstance(found, NotCompiled):
        raise found.with_traceback(None)
    return found


def compiled_in_use(name: str) -> ModuleType | None:
    """Return a compiled module of this package; None where it can't be had, or all of them are turned off."""
    if os.environ.get(NATIVE) == "0":
        return None
    found = _found(name)
    return None if isinstance(found, NotCompiled) else found


def problems() -> list[str]:
    """Say of each compiled part that can't be had why."""
    return [str(found) for found in map(_found, PARTS) if isinstance(found, NotCompiled)]


@cache
def _found(name: str) -> ModuleType | NotCompiled:
    # Before it is imported: what was built from other sources may not even do that as it should.
    if _is_old(name):
        old = OldBuild(f"{name} was built from other sources than those beside it: build it again (make setup)")
        log.warning("%s; meanwhile what it does is done without it, with the same results", old)
        return old
    try:
        return import_module(name)
    except ImportError as error:
        return NotCompiled(f"{name} was not built ({error}): install twopc again where there is a C compiler")


def _is_old(name: str) -> bool:
    found = find_spec(name)
    if found is None or found.origin is None:
        return False
    built = Path(found.origin)
    return mark_of(built.parent).encode() not in built.read_bytes()
