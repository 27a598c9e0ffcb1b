"""A file system that can lose power: disk, `shutil` and paths, as `twopc.files` and `FolderStorage` use them.

What a crash of a process leaves is all that it wrote. What a power failure leaves is what was synced: a file's bytes up
to its last fsync, a folder's names up to the folder's last fsync; of everything since, any part. A file that was never
synced may be there, torn.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from twopc.disk import Disk


@dataclass(eq=False, slots=True)
class _File:
    data: bytes = b""
    synced: bytes | None = None


@dataclass(eq=False, slots=True)
class _Folder:
    names: dict[str, _Node] = field(default_factory=dict)
    synced: dict[str, _Node] = field(default_factory=dict)


_Node = _File | _Folder


class SimFileSystem:
    """Folders and files. `refuses` is asked before each write, sync, removal and name; `named` is told of new names."""

    def __init__(self, refuses: Callable[[str, str], None], named: Callable[[str, bytes], None]) -> None:
        self.refuses = refuses
        self.named = named
        self.root = SimPath(self, "")
        self._top = _Folder()
        self._nodes: dict[str, _Node] = {"": self._top}

    def find(self, path: str) -> _Node | None:
        return self._nodes.get(path)

    def folder(self, path: str) -> _Folder:
        node = self._nodes.get(path)
        if not isinstance(node, _Folder):
            raise FileNotFoundError(errno.ENOENT, "No such folder", path)
        return node

    def file(self, path: str) -> _File:
        node = self._nodes.get(path)
        if not isinstance(node, _File):
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return node

    def add(self, path: str, node: _Node) -> None:
        """Give a node a name that is free."""
        parent, _, name = path.rpartition("/")
        if path in self._nodes:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self.folder(parent).names[name] = node
        self._nodes[path] = node
        if isinstance(node, _File):
            self.named(path, node.data)

    def remove(self, path: str) -> _Node:
        """Take a name away, and all below it."""
        parent, _, name = path.rpartition("/")
        node = self._nodes.pop(path)
        del self.folder(parent).names[name]
        if isinstance(node, _Folder):
            for below in [each for each in self._nodes if each.startswith(f"{path}/")]:
                del self._nodes[below]
        return node

    def move(self, path: str, target: str) -> None:
        node = self._nodes.get(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or folder", path)
        if target in self._nodes:
            raise FileExistsError(errno.EEXIST, "File exists", target)
        self.remove(path)
        self.add(target, node)
        self._index(target, node)

    def lose_power(self, choice: int) -> None:
        """Keep what was synced; `choice` decides what else is kept."""
        rng = random.Random(choice)
        self._forget(self._top, rng)
        self._nodes = {"": self._top}
        self._index("", self._top)

    def _forget(self, folder: _Folder, rng: random.Random) -> None:
        names = dict(folder.synced)
        for name, node in folder.names.items():
            if folder.synced.get(name) is not node and rng.random() < 0.5:
                names[name] = node
        for name in folder.synced.keys() - folder.names.keys():
            if rng.random() < 0.5:
                del names[name]
        folder.names = names
        folder.synced = dict(names)
        for node in names.values():
            if isinstance(node, _Folder):
                self._forget(node, rng)
            elif node.synced != node.data:
                node.data = node.data[: rng.randint(0, len(node.data))] if node.synced is None else node.synced
                node.synced = node.data

    def _index(self, path: str, node: _Node) -> None:
        if isinstance(node, _Folder):
            for name, below in node.names.items():
                inside = f"{path}/{name}" if path else name
                self._nodes[inside] = below
                self._index(inside, below)

    def flip_a_bit(self, choice: int) -> str:
        """Damage a file that holds something; return its name, or nothing if there is none."""
        held = sorted(path for path, node in self._nodes.items() if isinstance(node, _File) and node.data)
        held = [path for path in held if not path.rpartition("/")[2].startswith(".")]
        if not held:
            return ""
        path = held[choice % len(held)]
        file = self.file(path)
        data = bytearray(file.data)
        bit = choice // len(held) % (8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        file.data = file.synced = bytes(data)
        return path


class SimPath:
    """As `pathlib.Path`, on a simulated file system."""

    __slots__ = ("fs", "text")

    def __init__(self, fs: SimFileSystem, text: str) -> None:
        self.fs = fs
        self.text = text

    def __truediv__(self, name: str) -> SimPath:
        return SimPath(self.fs, f"{self.text}/{name}" if self.text and name else self.text or name)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimPath) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def parent(self) -> SimPath:
        return SimPath(self.fs, self.text.rpartition("/")[0])

    def with_name(self, name: str) -> SimPath:
        return self.parent / name

    def is_dir(self) -> bool:
        return isinstance(self.fs.find(self.text), _Folder)

    def exists(self) -> bool:
        return self.fs.find(self.text) is not None

    def remove_tree(self) -> None:
        if self.is_dir():
            self.fs.refuses("remove", self.text)
            self.fs.remove(self.text)

    def iterdir(self) -> Iterator[SimPath]:
        return iter([self / name for name in self.fs.folder(self.text).names])

    def glob(self, pattern: str) -> Iterator[SimPath]:
        prefix = pattern.removesuffix("*")
        return iter([path for path in self.iterdir() if path.name.startswith(prefix)] if self.is_dir() else [])

    def read_bytes(self) -> bytes:
        return self.fs.file(self.text).data


class SimDisk(Disk):
    """As `twopc.disk.Disk`, for simulated paths: each call may be refused."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[SimPath, _File]] = {}
        self._last = 0

    def create(self, path: Any) -> int:
        path.fs.refuses("name", path.text)
        file = _File()
        path.fs.add(path.text, file)
        self._last += 1
        self._open[self._last] = (path, file)
        return self._last

    def write(self, descriptor: int, data: memoryview) -> int:
        path, file = self._open[descriptor]
        try:
            path.fs.refuses("write", path.text)
        except OSError:
            file.data += bytes(data[: len(data) // 2])
            raise
        file.data += bytes(data)
        return len(data)

    def sync(self, descriptor: int) -> None:
        path, file = self._open[descriptor]
        path.fs.refuses("sync", path.text)
        file.synced = file.data

    def sync_folder(self, path: Any) -> None:
        path.fs.refuses("sync", path.text)
        folder = path.fs.folder(path.text)
        folder.synced = dict(folder.names)

    def link(self, source: Any, target: Any) -> None:
        target.fs.refuses("name", target.text)
        target.fs.add(target.text, source.fs.file(source.text))

    def rename(self, source: Any, target: Any) -> None:
        target.fs.refuses("name", target.text)
        target.fs.move(source.text, target.text)

    def make_folder(self, path: Any) -> None:
        path.fs.refuses("name", path.text)
        path.fs.add(path.text, _Folder())

    def delete(self, path: Any) -> None:
        path.fs.refuses("remove", path.text)
        path.fs.file(path.text)
        path.fs.remove(path.text)

    def close(self, descriptor: int) -> None:
        """As `os.close`."""
        del self._open[descriptor]


class SimUuid:
    """As the module `uuid`, for who wants names that nobody else has."""

    def __init__(self) -> None:
        self._names = count(1)
        self.hex = ""

    def uuid4(self) -> SimUuid:
        self.hex = f"{next(self._names):x}"
        return self


def remove_tree(path: _Tree) -> None:
    """As `twopc.files.remove_tree`."""
    path.remove_tree()


class SimShutil:
    """As the module `shutil`, for who removes folders."""

    @staticmethod
    def rmtree(path: _Tree, ignore_errors: bool = False) -> None:
        path.remove_tree()


class _Tree(Protocol):
    def remove_tree(self) -> None: ...
