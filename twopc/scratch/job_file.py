"""A job file that is written for one run: it loads the user's, and makes another job of that.

A host that starts fresh processes loads the job from a file, so a job that is made while one runs is a file, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from twopc.job import Job

_NAME = "written_job.py"

_FILE = '''"""Written for one run."""

from {module} import {function}

job = {function}({spec!r}, **{arguments!r})
'''


def write_job_file(folder: Path, made_by: Callable[..., Job], spec: str, /, **arguments: object) -> str:
    """Write a file whose job is what a function makes of another one and of plain values; return its path."""
    written = folder / _NAME
    written.write_text(
        _FILE.format(module=made_by.__module__, function=made_by.__name__, spec=_absolute(spec), arguments=arguments)
    )
    return str(written)


def _absolute(spec: str) -> str:
    """Return a job's name as it is given to be loaded, wherever the file that names it is written."""
    file, colon, variable = spec.rpartition(":")
    path, suffix = (file, f":{variable}") if colon and file.endswith(".py") else (spec, "")
    return f"{Path(path).resolve()}{suffix}"
