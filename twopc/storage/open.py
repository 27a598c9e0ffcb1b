"""Opens the checkpoint store that a setting names: the path of a folder now."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

from twopc.config import refuse_url
from twopc.errors import ConfigurationError
from twopc.storage import files
from twopc.storage.local import LocalStore
from twopc.storage.store import CheckpointStore

_FILE_URL = "file://"
_NEVER_BY_ITSELF = (NotADirectoryError, FileExistsError, FileNotFoundError, PermissionError)
"""What waiting does not mend; a full disk it may."""


def open_to_write(where: str | Path) -> CheckpointStore:
    """Return the store of all jobs that a path, or a file:// URL, names, for who keeps checkpoints there.

    Raises ConfigurationError for other URLs, and, naming it, for a folder that can't hold any.
    """
    folder = _folder(where)
    try:
        files.make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        if isinstance(error, _NEVER_BY_ITSELF) or error.errno == errno.EROFS:
            raise ConfigurationError(
                f"checkpoints can't be kept in {folder}: {error.strerror}; name a folder that can be written to "
                "(--checkpoint-dir)"
            ) from error
    return LocalStore(folder)


def _folder(where: str | Path) -> Path:
    text = str(where)
    if text.startswith(f"{_FILE_URL}/"):
        return Path(text.removeprefix(_FILE_URL))
    refuse_url(text)
    return Path(where)
