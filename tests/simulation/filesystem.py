"""A file system that can lose power: disk, `shutil` and paths, as `twopc.storage.files` and `LocalStore` use them.

What a crash of a process leaves is all that it wrote. What a power failure leaves is what was synced: a file's bytes up
to its last fsync, a folder's names up to the folder's last fsync; of everything since, any part. A file that was never
synced may be there, torn.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from twopc.storage.disk import Disk


@dataclass(eq=False, slots=True)
class File:
    data: bytes = b""
    synced: bytes | None = None


@dataclass(eq=False, slots=True)
class Folder:
    names: dict[str, Node] = field(default_factory=dict)
    synced: dict[str, Node] = field(default_factory=dict)


Node = File | Folder


class SimFileSystem:
    """Folders and files. `refuses` is asked before each write, sync, removal and name; `named` is told of new names."""

    def __init__(self, refuses: Callable[[str, str], None], named: Callable[[str, bytes], None]) -> None:
        self.refuses = refuses
        self.named = named
        self.paths: dict[str, SimPath] = {}
        self.root = SimPath(self, "", "", None)
        self._top = self.root.node = Folder()

    def path(self, text: str) -> SimPath:
        """The one path with this text, which knows what is there."""
        found = self.paths.get(text)
        if found is not None:
            return found
        above, _, name = text.rpartition("/")
        return SimPath(self, text, name, self.path(above))

    def find(self, text: str) -> Node | None:
        path = self.paths.get(text)
        return None if path is None else path.node

    def lose_power(self, choice: int) -> None:
        """Keep what was synced; `choice` decides what else is kept."""
        rng = random.Random(choice)
        self._forget(self._top, rng)
        for path in self.paths.values():
            path.node = None
        self.root.show(self._top)

    def _forget(self, folder: Folder, rng: random.Random) -> None:
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
            if isinstance(node, Folder):
                self._forget(node, rng)
            elif node.synced != node.data:
                node.data = node.data[: rng.randint(0, len(node.data))] if node.synced is None else node.synced
                node.synced = node.data

    def flip_a_bit(self, choice: int) -> str:
        """Damage a file that holds something; return its name, or nothing if there is none."""
        held = sorted(text for text, path in self.paths.items() if isinstance(path.node, File) and path.node.data)
        held = [text for text in held if not text.rpartition("/")[2].startswith(".")]
        if not held:
            return ""
        path = self.path(held[choice % len(held)])
        file = path.file()
        data = bytearray(file.data)
        bit = choice // len(held) % (8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        file.data = file.synced = bytes(data)
        return path.text


class SimPath:
    """As `pathlib.Path`, on a simulated file system, which makes all of them. `node` is what is there."""

    __slots__ = ("_below", "fs", "name", "node", "parent", "text")

    def __init__(self, fs: SimFileSystem, text: str, name: str, parent: SimPath | None) -> None:
        self.fs = fs
        self.text = text
        self.name = name
        self.parent: SimPath = parent or self
        self.node: Node | None = None
        self._below: dict[str, SimPath] = {}
        fs.paths[text] = self

    def __truediv__(self, name: str) -> SimPath:
        below = self._below.get(name)
        if below is None:
            text = f"{self.text}/{name}" if self.text and name else self.text or name
            below = self.fs.paths.get(text)
            if below is None:
                below = self.fs.path(text) if "/" in name else SimPath(self.fs, text, name, self)
            self._below[name] = below
        return below

    def __str__(self) -> str:
        return self.text

    def with_name(self, name: str) -> SimPath:
        return self.parent / name

    def is_dir(self) -> bool:
        return isinstance(self.node, Folder)

    def exists(self) -> bool:
        return self.node is not None

    def iterdir(self) -> Iterator[SimPath]:
        return iter([self / name for name in self.folder().names])

    def glob(self, pattern: str) -> Iterator[SimPath]:
        prefix = pattern.removesuffix("*")
        names = self.node.names if isinstance(self.node, Folder) else ()
        return iter([self / name for name in names if name.startswith(prefix)])

    def read_bytes(self) -> bytes:
        return self.file().data

    def remove_tree(self) -> None:
        if self.is_dir():
            self.fs.refuses("remove", self.text)
            self.remove()

    def folder(self) -> Folder:
        node = self.node
        if type(node) is not Folder:
            raise FileNotFoundError(errno.ENOENT, "No such folder", self.text)
        return node

    def file(self) -> File:
        node = self.node
        if type(node) is not File:
            raise FileNotFoundError(errno.ENOENT, "No such file", self.text)
        return node

    def add(self, node: Node) -> None:
        """Give a node this name, if it is free."""
        if self.node is not None:
            raise FileExistsError(errno.EEXIST, "File exists", self.text)
        above = self.parent.node
        if type(above) is not Folder:
            raise FileNotFoundError(errno.ENOENT, "No such folder", self.parent.text)
        above.names[self.name] = self.node = node
        if type(node) is File and node.data:
            self.fs.named(self.text, node.data)

    def remove(self) -> None:
        """Take this name away, and all below it."""
        del self.parent.folder().names[self.name]
        self._hide()

    def move(self, target: SimPath) -> None:
        node = self.node
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or folder", self.text)
        if target.node is not None:
            raise FileExistsError(errno.EEXIST, "File exists", target.text)
        self.remove()
        target.add(node)
        target.show(node)

    def show(self, node: Node) -> None:
        """Let this node be here, and all that it holds below."""
        self.node = node
        if type(node) is Folder:
            for name, below in node.names.items():
                (self / name).show(below)

    def _hide(self) -> None:
        node, self.node = self.node, None
        if type(node) is Folder:
            for name in node.names:
                (self / name)._hide()


class SimDisk(Disk):
    """As `twopc.storage.disk.Disk`, for simulated paths: each call may be refused."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[SimPath, File]] = {}
        self._last = 0

    def create(self, path: Any) -> int:
        path.fs.refuses("name", path.text)
        file = File()
        path.add(file)
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
        folder = path.folder()
        folder.synced = dict(folder.names)

    def link(self, source: Any, target: Any) -> None:
        target.fs.refuses("name", target.text)
        target.add(source.file())

    def rename(self, source: Any, target: Any) -> None:
        target.fs.refuses("name", target.text)
        source.move(target)

    def make_folder(self, path: Any) -> None:
        path.fs.refuses("name", path.text)
        path.add(Folder())

    def delete(self, path: Any) -> None:
        path.fs.refuses("remove", path.text)
        path.file()
        path.remove()

    def close(self, descriptor: int) -> None:
        """As `os.close`."""
        del self._open[descriptor]
