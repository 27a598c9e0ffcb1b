"""The kinds of damage to a stored file, as data: a name and what it does to the path."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], None]


class MaliciousPickle:
    """A value that an attacker stores: it makes a file when it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self._proof = proof

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self._proof),)


def proof_of(path: Path) -> Path:
    """The folder that is there if the pickle at this path was executed."""
    return path.parent.parent / "executed"


def _rewrite(path: Path, data: bytes) -> None:
    """As a new file: some file systems sync one that is cut and written again, which takes long."""
    path.unlink()
    path.write_bytes(data)


def cut_tail(path: Path) -> None:
    _rewrite(path, path.read_bytes()[:-1])


def cut_long_tail(path: Path) -> None:
    _rewrite(path, path.read_bytes()[:-20])


def cut_half(path: Path) -> None:
    data = path.read_bytes()
    _rewrite(path, data[: len(data) // 2])


def flip_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    _rewrite(path, bytes(data))


def flip_first_bit(path: Path) -> None:
    data = path.read_bytes()
    _rewrite(path, bytes([data[0] ^ 1]) + data[1:])


def flip_last_bit(path: Path) -> None:
    data = path.read_bytes()
    _rewrite(path, data[:-1] + bytes([data[-1] ^ 1]))


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    _rewrite(path, b"")


def append(path: Path) -> None:
    _rewrite(path, path.read_bytes() + b"\x00")


def zero(path: Path) -> None:
    """As a file system may leave what was never synced: the size is right."""
    _rewrite(path, b"\x00" * path.stat().st_size)


def grow_beyond_memory(path: Path) -> None:
    os.truncate(path, 1 << 42)


def plant_pickle(path: Path) -> None:
    _rewrite(path, pickle.dumps(MaliciousPickle(proof_of(path))))


def replace_by_link(path: Path) -> None:
    """The contents are right: it is the link that is refused."""
    twin = path.parents[2] / f"twin-{path.name}"
    path.rename(twin)
    path.symlink_to(twin)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Damage] = [
    cut_tail, cut_long_tail, cut_half, flip_bit, flip_first_bit, flip_last_bit, delete, empty, append, zero,
    grow_beyond_memory, plant_pickle, replace_by_link, replace_by_pipe, replace_by_folder,
]  # fmt: skip

NEED_BYTES = [cut_tail, cut_long_tail, cut_half, flip_bit, flip_first_bit, flip_last_bit, empty, zero]
