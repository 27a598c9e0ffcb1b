"""The discovery of the coordinator inside a running driver: a file in the user's own folder says where it is.

Invariants: only its owner can read the file, which holds the token of the run; it is never below a checkpoint folder;
one whose process is gone is not believed, and is removed. A run goes on without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from twopc.errors import ConfigurationError
from twopc.storage.store import CheckpointStore
from twopc.user_folders import STATE_VARIABLE, state_folder

_SAME_START_SECONDS = 1.0
_UNKNOWN = "`twopc stop` and `twopc jobs` won't find this job"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Announcement:
    """A coordinator that serves one job, in the process `pid` that began at `started` (Unix seconds)."""

    job: str
    checkpoint_dir: str
    address: str
    token: str = field(repr=False)
    host: str
    pid: int
    started: float

    @property
    def holds(self) -> bool:
        """Whether the process is still there, and no other that got its number."""
        try:
            return abs(psutil.Process(self.pid).create_time() - self.started) < _SAME_START_SECONDS
        except psutil.Error:
            return False


@contextmanager
def announced(job: str, store: CheckpointStore, address: str, token: str) -> Iterator[None]:
    """Let commands of this user on this machine find the coordinator, for as long as the context lasts."""
    here = psutil.Process()
    announcement = Announcement(
        job=job,
        checkpoint_dir=store.identity,
        address=address,
        token=token,
        host=socket.gethostname(),
        pid=here.pid,
        started=here.create_time(),
    )
    path = None
    try:
        path = _path(announcement.checkpoint_dir, job)
        _write(path, announcement)
    except ConfigurationError as error:
        log.warning("%s: %s", _UNKNOWN, error)
    except OSError as error:
        text = "%s: %s can't be written (%s): name another folder with %s"
        log.warning(text, _UNKNOWN, path, error.strerror, STATE_VARIABLE)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            # A run that started later may have taken the name over.
            if path is not None and _read(path) == announcement:
                path.unlink()


def find(store: CheckpointStore, job: str) -> Announcement:
    """Return where the job's coordinator is; raise ConfigurationError if none was announced on this machine."""
    found = _believed(_path(store.identity, job))
    if found is None:
        raise ConfigurationError(
            f"no run of job {job!r} with checkpoints in {store.place()} is found on this machine: name its folder "
            "with --checkpoint-dir, or its coordinator with --coordinator"
        )
    return found


def find_all(store: CheckpointStore) -> list[Announcement]:
    """Every coordinator that was announced on this machine for this folder, by job."""
    believed = [_believed(path) for path in _folder().glob("*.json")]
    return sorted(
        (announcement for announcement in believed if announcement and announcement.checkpoint_dir == store.identity),
        key=lambda announcement: announcement.job,
    )


def _folder() -> Path:
    return state_folder() / "coordinators"


def _path(root: str, job: str) -> Path:
    digest = hashlib.sha256(f"{root}\0{job}".encode()).hexdigest()
    return _folder() / f"{digest[:32]}.json"


def _write(path: Path, announcement: Announcement) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(announcement), file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _believed(path: Path) -> Announcement | None:
    try:
        found = _read(path)
        if found is None or found.host != socket.gethostname():
            return None
        if found.holds:
            return found
        path.unlink(missing_ok=True)
    except OSError as error:
        log.debug("%s can't be read: %s", path, error.strerror)
    return None


def _read(path: Path) -> Announcement | None:
    """The announcement in a file that is this user's own; None if there is none, or it isn't one."""
    try:
        with path.open() as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            return Announcement(**json.load(file))
    except (FileNotFoundError, ValueError, TypeError):
        return None
