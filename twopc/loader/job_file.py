"""The file of a job that a program built: a process that starts afresh finds the job there, by a name."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from twopc.errors import ConfigurationError
from twopc.graph import GraphBuilder

_MAIN = "__main__"
_ELSEWHERE = "host='inline' runs one subtask in this process, host='spark' as many as you like"


def job_file_of(job: GraphBuilder) -> str:
    """Return FILE.py:NAME, as `load_job` takes it; raise ConfigurationError where there is no such place.

    A module that was imported is preferred to the program itself, which may do more than define its job.
    """
    places = [
        (module.__name__ == _MAIN, str(file.resolve()), name)
        for module in list(sys.modules.values())
        if (file := _file_of(module)) is not None
        for name, value in list(vars(module).items())
        if value is job
    ]
    if not places:
        raise ConfigurationError(
            f"host='process' loads job {job.name!r} anew in each worker, so it must be a variable at the top level of "
            f"a .py file, and it is none (a notebook, a prompt and a function have no such place). {_ELSEWHERE}"
        )
    _, path, name = min(places)
    return f"{path}:{name}"


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) and file.endswith(".py") and Path(file).is_file() else None
