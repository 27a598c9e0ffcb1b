"""A file system of HDFS, by `hdfs-native`, of which this is the door: files, folders, and the built-in errors.

Invariants:

- The client is made where it is used first, and never in a process that was forked from one that has used it: its
  threads are not there then.
- An answer that doesn't come in `_SILENCE_S` is an error: the client itself would wait for ever. Whether what it was
  about has been done is unknown then, and it may still be done.
- A request whose connection ended before its answer is sent again, once, and may meet what it has done itself.
- Behind either, the next call goes over a new connection.
"""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from twopc.errors import ConfigurationError
from twopc.storage.one_process import take_for_this_process

try:
    from hdfs_native import Client, WriteOptions
except ImportError as missing:
    raise ConfigurationError(
        "checkpoints on HDFS need its client, on the driver, the coordinator and all workers: "
        "pip install 'twopc-streams[hdfs]'"
    ) from missing

T = TypeVar("T")

_SILENCE_S = 30.0
_PIECE_BYTES = 4 * 1024 * 1024
_SYNCED_BYTES = 32 * 1024 * 1024
"""What is synced at once. It divides `_BLOCK_BYTES`: a block that is full is never synced again."""

_BLOCK_BYTES = 128 * 1024 * 1024
_CLIENT_SETTINGS = {
    "dfs.client.socket-timeout": "15000",
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "3000",
}
ADVICE = (
    "see HADOOP_CONF_DIR (core-site.xml and hdfs-site.xml), HADOOP_USER_NAME, and the ticket or token where HDFS asks "
    "for one"
)


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder."""

    name: str
    is_folder: bool


class Hdfs:
    """One file system, as this process sees it. No server is asked until a method is called; paths begin with '/'."""

    def __init__(self, authority: str) -> None:
        self.url = f"hdfs://{authority}"
        self._current: Any = None

    def make_folder(self, path: str) -> None:
        """Make a folder, and those that it stands in, private to this user; one that is there is fine."""
        self._request(path, "mkdirs", path, 0o700, True)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Store a file, in place of what is there: closed, and on the disks of the data nodes.

        One that could not be stored may be there, not whole.
        """
        writer = self._create(path)
        unsynced = 0
        for piece in _pieces(chunks):
            self._ask(path, writer.write, piece)
            unsynced += len(piece)
            if unsynced == _SYNCED_BYTES:
                self._ask(path, writer.hsync)
                unsynced = 0
        if unsynced:
            self._ask(path, writer.hsync)
        self._ask(path, writer.close)

    def write_small(self, path: str, data: bytes) -> None:
        """The same of a few bytes: begun again, once, if a connection ends meanwhile."""
        try:
            self.write(path, [data])
        except ConnectionAbortedError:
            self.write(path, [data])

    def _create(self, path: str) -> Any:
        options = WriteOptions(block_size=_BLOCK_BYTES, permission=0o600, overwrite=True, create_parent=False)
        try:
            return self._request(path, "create", path, options)
        except FileExistsError as error:
            # The server takes the second try of this very call for another writer.
            raise OSError(errno.EAGAIN, error.strerror, error.filename) from None

    def rename(self, old: str, new: str) -> None:
        """Give a file another name in a folder that is there.

        Raises FileExistsError if that is taken, FileNotFoundError if the file is not there; either may be the work of
        an earlier try of this very call.
        """
        self._request(new, "rename", old, new, False)

    def read(self, path: str) -> bytes:
        return b"".join(self.open(path)[1])

    def open(self, path: str) -> tuple[int, Iterator[bytes]]:
        """Return the size of a file, and its bytes, as they come."""
        reader = self._request(path, "read", path)
        size = int(reader.file_length())
        return size, self._chunks(path, reader, size)

    def _chunks(self, path: str, reader: Any, size: int) -> Iterator[bytes]:
        for start in range(0, size, _PIECE_BYTES):
            length = min(_PIECE_BYTES, size - start)
            yield bytes(self._ask(path, reader.read_range, start, length))

    def listed(self, folder: str) -> list[FolderEntry]:
        """Return what stands in a folder; nothing if it isn't there."""
        try:
            return list(self._request(folder, "list_status", folder, False))
        except FileNotFoundError:
            return []

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; what is gone already is fine."""
        self._request(path, "delete", path, True)

    def _request(self, path: str, request: str, *arguments: object) -> Any:
        try:
            return self._ask(path, _answered, self._client(), request, *arguments)
        except ConnectionAbortedError:
            return self._ask(path, _answered, self._client(), request, *arguments)

    def _ask(self, path: str, call: Callable[..., T], *arguments: object) -> T:
        """Wait for an answer, but not for ever; raise the built-in errors, in few words, in place of the client's."""
        place = f"{self.url}{path}"
        try:
            return _called(call, *arguments).result(_SILENCE_S)
        except TimeoutError:
            self._new_connection()
            raise OSError(errno.ETIMEDOUT, f"HDFS has not answered in {_SILENCE_S:g} s", place) from None
        except (FileNotFoundError, FileExistsError) as error:
            raise type(error)(_NUMBERS[type(error)], _first_line(error), place) from None
        except RuntimeError as error:
            raise _built_in(error, place) from None
        except OSError as error:
            self._new_connection()
            text = f"HDFS has given no good answer: {_first_line(error)}; {ADVICE}"
            raise ConnectionAbortedError(errno.ECONNABORTED, text, place) from None

    def _new_connection(self) -> None:
        """Leave the client, and with it its connection: a moment long it gives what has ended to the next call, too."""
        self._current = None

    def _client(self) -> Any:
        take_for_this_process("HDFS")
        client = self._current
        if client is None:
            client = self._current = self._new_client()
        return client

    def _new_client(self) -> Any:
        try:
            # What it wraps: the files that it makes of that close themselves in a search for garbage, and wait.
            return Client(self.url, _CLIENT_SETTINGS).inner
        except (RuntimeError, OSError) as error:
            raise ConfigurationError(f"{self.url} can't be opened: {_first_line(error)}; {ADVICE}") from None


_NUMBERS = {FileNotFoundError: errno.ENOENT, FileExistsError: errno.EEXIST}


def _called(call: Callable[..., T], *arguments: object) -> Future[T]:
    """Begin a call on a thread of its own, which is left alone if nobody waits for it any more."""
    answer: Future[T] = Future()

    def answering() -> None:
        try:
            answer.set_result(call(*arguments))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            answer.set_exception(error)

    threading.Thread(target=answering, name="twopc-hdfs", daemon=True).start()
    return answer


def _answered(client: Any, request: str, *arguments: object) -> Any:
    answer = getattr(client, request)(*arguments)
    return answer if request != "list_status" else [_listed(each) for each in answer]


def _listed(status: Any) -> FolderEntry:
    return FolderEntry(str(status.path).rpartition("/")[2], bool(status.isdir))


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a stream so that its sums meet `_SYNCED_BYTES`."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= _PIECE_BYTES:
            yield bytes(held[:_PIECE_BYTES])
            del held[:_PIECE_BYTES]
    if held:
        yield bytes(held)


_REFUSAL = re.compile(r'(\w+)\("(?:[\w.$]*\.)?([^"]*)"(?:, "((?:[^"\\]|\\.)*)")?')
_REFUSED = {"AccessControlException", "AuthorizationException", "InvalidToken"}


def _built_in(error: RuntimeError, place: str) -> OSError:
    found = _REFUSAL.match(str(error))
    exception, message = (found[2], found[3] or "") if found is not None else ("", _first_line(error))
    words = f"{exception}: {_first_line(message)}".removeprefix(": ")
    if exception in _REFUSED:
        return PermissionError(errno.EACCES, f"HDFS refuses: {words}; {ADVICE}", place)
    if exception == "ParentNotDirectoryException":
        return NotADirectoryError(errno.ENOTDIR, words, place)
    return OSError(errno.EIO, f"HDFS has given no good answer: {words}", place)


def _first_line(error: object) -> str:
    """The server's own words, without where in its program it was."""
    return re.split(r"\n|\\n", str(error))[0].replace('\\"', '"')[:300]
