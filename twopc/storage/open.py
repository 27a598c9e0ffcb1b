"""Opens the checkpoint store that a setting or an argument names: the one place where a text becomes a store."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import unquote

from twopc.errors import ConfigurationError
from twopc.storage.local import LocalStore
from twopc.storage.store import CheckpointStore

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)
"""One slash is enough: such a path is never meant, and where it was taken for one, two slashes became one."""

_BUCKET_URL = re.compile(r"//?([a-z0-9][a-z0-9._-]*)(?:/((?!\.)[\w.=+@-]+(?:/(?!\.)[\w.=+@-]+)*))?/?", re.ASCII)
_HDFS_URL = re.compile(r"//?([A-Za-z0-9][A-Za-z0-9._-]*(?::\d{1,5})?)((?:/(?!\.)[\w.=+@-]+)+)/?", re.ASCII)
_FILE_URL = re.compile(r"(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL)


def absolute_place(where: str) -> str:
    """Return a place that doesn't depend on the working folder: of a path its absolute one, of a URL itself."""
    return where if _URL.fullmatch(where) else str(Path(where).absolute())


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
            f"share, or a URL of one of these kinds: {', '.join(f'{each}:' for each in OPENERS)}"
        )
    return opener(url[2])


def _open_file_url(rest: str) -> CheckpointStore:
    path = _FILE_URL.fullmatch(rest)
    if path is None:
        raise ConfigurationError(
            f"checkpoints can't be kept in 'file:{rest}': it names another host; write file:///PATH"
        )
    return LocalStore(Path(unquote(path[1])))


def _open_bucket(scheme: str, rest: str) -> CheckpointStore:
    # Here: whoever keeps checkpoints in a folder doesn't load the client of object stores.
    from twopc.storage.bucket import Bucket
    from twopc.storage.object_store import ObjectStore

    url = _BUCKET_URL.fullmatch(rest)
    if url is None:
        # Not repeated: what stands there may be a key or a signature, which belongs into the environment.
        raise ConfigurationError(
            f"checkpoints can't be kept at a {scheme}: URL of this form: write {scheme}://BUCKET/PREFIX, of letters, "
            "digits and _ - . = + @ , and give credentials by environment variables"
        )
    return ObjectStore(Bucket(scheme, url[1]), f"{url[2]}/" if url[2] else "")


def _open_hdfs(rest: str) -> CheckpointStore:
    url = _HDFS_URL.fullmatch(rest)
    if url is None:
        raise ConfigurationError(
            "checkpoints can't be kept at a hdfs: URL of this form: write hdfs://NAMENODE:PORT/FOLDER, or "
            "hdfs://NAMESERVICE/FOLDER with HADOOP_CONF_DIR in the environment, of letters, digits and _ - . = + @"
        )
    # Here too: the client is an extra.
    from twopc.storage.hdfs import Hdfs
    from twopc.storage.hdfs_store import HdfsStore

    return HdfsStore(Hdfs(url[1]), url[2])


OPENERS: dict[str, Callable[[str], CheckpointStore]] = {
    "file": _open_file_url,
    **{scheme: partial(_open_bucket, scheme) for scheme in ("s3", "gs", "az")},
    "hdfs": _open_hdfs,
}
"""The function that opens a URL of each scheme, given what comes after the colon."""
