"""HDFS in memory: the client's ways and its errors, with a name node that loses answers, stands still, or refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from twopc.storage.hdfs import Hdfs


class MemoryHdfs(Hdfs):
    """One file system. Requests in `lost` lose their first answer; those in `silent` wait until `answering` is set."""

    def __init__(self) -> None:
        super().__init__("namenode:8020")
        self.files: dict[str, bytes] = {}
        self.folders = {"/"}
        self.requests: list[str] = []
        self.lost: list[str] = []
        self.silent: set[str] = set()
        self.refusing: BaseException | None = None
        self.answering = threading.Event()
        self.clients = 0

    def _new_client(self) -> Any:
        self.clients += 1
        return _Client(self)


class _Client:
    """A fake of `hdfs_native.RawClient`, as far as the store asks for it."""

    def __init__(self, hdfs: MemoryHdfs) -> None:
        self._hdfs = hdfs

    def mkdirs(self, path: str, permission: int, create_parent: bool) -> None:
        def make() -> None:
            for end in range(1, len(path) + 1):
                if (path + "/")[end] == "/":
                    self._hdfs.folders.add(path[:end])

        self._done("mkdirs", make)

    def create(self, path: str, options: Any) -> _Writer:
        def create() -> None:
            if path.rpartition("/")[0] not in self._hdfs.folders:
                raise FileNotFoundError("Parent directory doesn't exist\n\tat org.apache.hadoop")
            self._hdfs.files[path] = b""

        self._done("create", create)
        return _Writer(self._hdfs, path)

    def rename(self, old: str, new: str, overwrite: bool) -> None:
        def rename() -> None:
            if old not in self._hdfs.files:
                raise FileNotFoundError(f"rename source {old} is not found.\n\tat org.apache.hadoop")
            if new in self._hdfs.files:
                raise FileExistsError(f"rename destination {new} already exists\n\tat org.apache.hadoop")
            self._hdfs.files[new] = self._hdfs.files.pop(old)

        self._done("rename", rename)

    def read(self, path: str) -> _Reader:
        self._done("read", lambda: None)
        if path not in self._hdfs.files:
            raise FileNotFoundError(f"File does not exist: {path}\n\tat org.apache.hadoop")
        return _Reader(self._hdfs.files[path])

    def list_status(self, path: str, recursive: bool) -> Iterator[Any]:
        self._done("list", lambda: None)
        if path not in self._hdfs.folders:
            raise FileNotFoundError(path)
        for each in sorted(list(self._hdfs.files) + list(self._hdfs.folders)):
            if each != "/" and each.rpartition("/")[0] == path:
                yield SimpleNamespace(path=each, isdir=each in self._hdfs.folders)

    def delete(self, path: str, recursive: bool) -> bool:
        def delete() -> None:
            self._hdfs.files.pop(path, None)
            for each in [each for each in self._hdfs.files if each.startswith(f"{path}/")]:
                del self._hdfs.files[each]
            self._hdfs.folders -= {each for each in self._hdfs.folders if f"{each}/".startswith(f"{path}/")}

        self._done("delete", delete)
        return True

    def _done(self, request: str, do: Callable[[], None]) -> None:
        hdfs = self._hdfs
        hdfs.requests.append(request)
        if request in hdfs.silent:
            hdfs.answering.wait(10)
        if hdfs.refusing is not None:
            raise hdfs.refusing
        do()
        if request in hdfs.lost:
            hdfs.lost.remove(request)
            raise OSError("RPC listener disconnected")


class _Writer:
    def __init__(self, hdfs: MemoryHdfs, path: str) -> None:
        self._hdfs, self._path, self._held = hdfs, path, b""

    def write(self, piece: bytes) -> None:
        self._held += piece

    def hsync(self) -> None:
        self._hdfs.requests.append("hsync")

    def close(self) -> None:
        self._hdfs.files[self._path] = self._held


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def file_length(self) -> int:
        return len(self._data)

    def read_range(self, start: int, length: int) -> bytes:
        return self._data[start : start + length]
