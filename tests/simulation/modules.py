"""Stand-ins for modules whose functions touch the machine."""

from __future__ import annotations

from itertools import count
from typing import Protocol


class SimSecrets:
    """As the module `secrets`, for who wants names that nobody else has."""

    def __init__(self) -> None:
        self._names = count(1)

    def token_hex(self, _bytes: int) -> str:
        return f"{next(self._names):x}"


def remove_tree(path: _Tree) -> None:
    """As `twopc.storage.files.remove_tree`."""
    path.remove_tree()


class SimShutil:
    """As the module `shutil`, for who removes folders."""

    @staticmethod
    def rmtree(path: _Tree, ignore_errors: bool = False) -> None:
        path.remove_tree()


class _Tree(Protocol):
    def remove_tree(self) -> None: ...
