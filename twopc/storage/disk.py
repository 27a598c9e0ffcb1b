"""The system calls that change what is on a disk: a method each, and nothing that decides.

`twopc.storage.files` is the only caller. This is where tests make a disk full, let a sync fail, and stop at every
single step.
"""

from __future__ import annotations

import os
from pathlib import Path


class Disk:
    """The disks of this machine."""

    def create(self, path: Path) -> int:
        """Open a file that must not exist yet for writing, readable by this user only; return its descriptor."""
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write some of the data; return how much it was."""
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Make a file's contents durable. After a failure they are lost, whatever a second call says."""
        os.fsync(descriptor)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_private(self, descriptor: int) -> None:
        """Let nobody but this user read or write a file."""
        os.fchmod(descriptor, 0o600)

    def link(self, source: Path, target: Path) -> None:
        """Give a file another name; FileExistsError if the name is taken."""
        os.link(source, target, follow_symlinks=False)

    def make_folder(self, path: Path) -> None:
        """Make one folder that does not exist yet, for this user only."""
        os.mkdir(path, 0o700)

    def delete(self, path: Path) -> None:
        """Delete one file, or a link itself."""
        os.unlink(path)

    def delete_folder(self, path: Path) -> None:
        """Delete one folder that is empty."""
        os.rmdir(path)
