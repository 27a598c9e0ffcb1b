"""Notes which environment variables the files of a folder read, while they are being loaded.

A job is often named or tuned by the environment of its driver, and a worker on another machine has another one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BETWEEN = (os.__file__, "<frozen os>", "<frozen _collections_abc>")
_OURS = f"{Path(__file__).parents[1]}{os.sep}"


@contextmanager
def noted_reads(folder: Path, reads: MutableMapping[str, str | None]) -> Iterator[None]:
    """Put into `reads` what code from the folder asks of `os.environ` meanwhile, and the answer.

    What it has us ask is its question too: where its schema registry is.
    """
    kind: Any = type(os.environ)
    read = kind.__getitem__
    root = f"{folder}{os.sep}"

    def note(environ: Any, name: Any) -> Any:
        try:
            value = read(environ, name)
        except KeyError:
            value = None
        if isinstance(name, str) and _reader().startswith(root):
            reads[name] = value
        return read(environ, name)

    kind.__getitem__ = note
    try:
        yield
    finally:
        kind.__getitem__ = read


def _reader() -> str:
    """Return the file whose code asks: `get` and `getenv` are Python's own, and what it calls may be ours."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        frame.f_code.co_filename in _BETWEEN or frame.f_code.co_filename.startswith(_OURS)
    ):
        frame = frame.f_back
    return frame.f_code.co_filename
