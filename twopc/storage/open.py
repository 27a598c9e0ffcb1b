"""Opens the checkpoint store that a setting or an argument names: the one place where a text becomes a store."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import unquote

from twopc.errors import ConfigurationError
from twopc.storage.local import LocalStore
from twopc.storage.store import CheckpointStore

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)
"""One slash is enough: such a path is never meant, and where it was taken for one, two slashes became one."""

_FILE_URL = re.compile(r"(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL)


def open_store(where: str | PathLike[str]) -> CheckpointStore:
    """Return the store that a path, or a URL, names; nothing is looked for, or made, there.

    Raises ConfigurationError for a URL that names none.
    """
    text = fspath(where)
    url = _URL.fullmatch(text)
    if url is None:
        return LocalStore(Path(text))
    opener = OPENERS.get(url[1].lower())
    if opener is None:
        raise ConfigurationError(
            f"checkpoints can't be kept in {text!r}: give the path of a folder, on a file system that all machines "
            f"share, or the URL of one ({', '.join(f'{each}:' for each in OPENERS)}); object stores can't be used yet"
        )
    return opener(url[2])


def _open_file_url(rest: str) -> CheckpointStore:
    path = _FILE_URL.fullmatch(rest)
    if path is None:
        raise ConfigurationError(
            f"checkpoints can't be kept in 'file:{rest}': it names another host; write file:///PATH"
        )
    return LocalStore(Path(unquote(path[1])))


OPENERS: dict[str, Callable[[str], CheckpointStore]] = {"file": _open_file_url}
"""What opens a URL of each scheme, given what comes after the colon."""
