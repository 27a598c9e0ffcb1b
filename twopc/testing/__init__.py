"""The public testing kit, for users' tests and demos, for `twopc broker`, and for drills and benchmarks.

Public are:

- `MemoryRun`: a job in a test, with no broker: `docs/testing-jobs.md`; `MemoryRegistry`: a schema registry for it;
- `twopc.testing.broker`: a real broker, on this machine or in a container;
- `twopc.testing.topics` and `rows`: topics on it, and records without it.

Names are loaded when they are first used: who starts a broker needs no job.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twopc.testing.memory.registry import MemoryRegistry
    from twopc.testing.memory.run import MemoryRun

__all__ = ["MemoryRegistry", "MemoryRun"]

_HOMES = {"MemoryRegistry": "twopc.testing.memory.registry", "MemoryRun": "twopc.testing.memory.run"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
