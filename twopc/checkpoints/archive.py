"""A copied checkpoint as one file: a tar archive, uncompressed, of the store that `twopc.checkpoints.copy` makes.

Invariants:

- An archive is there whole, or not at all.
- What an archive says is not believed: a member is taken out only if it is a regular file, of a size that the archive
  really has, under a name that a copy has; into a new folder, without following a link or replacing a file. Whoever
  made the archive decides nothing else. Python's own filter for data is asked as well.
"""

from __future__ import annotations

import io
import re
import secrets
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from twopc.checkpoints.copy import copy_checkpoint
from twopc.checkpoints.reference import ARCHIVE_SUFFIX, LocatedCheckpoint, locate
from twopc.errors import ConfigurationError, ForeignFile, TwoPhaseCommitError, Unavailable
from twopc.protocol.ids import checked_name
from twopc.protocol.layout import CHECKPOINT_FILE, LEDGER, LEDGER_FILE
from twopc.storage import files
from twopc.storage.local import LocalStore
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore
from twopc.user_folders import temporary_folder

MEMBERS_MAX = 10_000_000
HEADER_BYTES_MAX = 1024 * 1024
"""Of what says something of the file that follows, such as a long name."""

_OTHER_ARCHIVES = (".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".7z")
_CHUNK_BYTES = 1024 * 1024


class _Bounded(tarfile.TarInfo):
    """A header whose word is not taken for how much is to be read into memory, as Python's own reader would."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if not member.isreg() and member.size > HEADER_BYTES_MAX:
            raise ValueError(f"what should be a long name claims {member.size:,} bytes")
        return member


def copy_to(located: LocatedCheckpoint, target: str) -> None:
    """Make an archive or a store of a checkpoint, as the name of the target says; as `copy_checkpoint`."""
    if target.endswith(_OTHER_ARCHIVES):
        raise ConfigurationError(
            f"{target} is named as an archive that isn't made here: give a name that ends with {ARCHIVE_SUFFIX}, for "
            "one that is not compressed, or a folder's"
        )
    if target.endswith(ARCHIVE_SUFFIX):
        pack(located, Path(target))
    else:
        copy_checkpoint(located, open_store(target))


@contextmanager
def opened(reference: str, root: CheckpointStore, job: str | None = None) -> Iterator[LocatedCheckpoint]:
    """Find the checkpoint that `reference` names, as `locate` does; in an archive too, unpacked for this context."""
    path = Path(reference)
    if not (reference.endswith(ARCHIVE_SUFFIX) and path.is_file()):
        yield locate(reference, root, job)
        return
    with tempfile.TemporaryDirectory(prefix="twopc-archive-", dir=temporary_folder()) as folder:
        unpack(path, Path(folder) / "unpacked")
        yield locate(str(Path(folder) / "unpacked"), root, job)


def pack(located: LocatedCheckpoint, archive: Path) -> None:
    """Make the file `archive`, which must not exist yet, of a checkpoint and what it needs; as `copy_checkpoint`."""
    if archive.exists() or archive.is_symlink():
        raise ConfigurationError(f"{archive} is there already: name a file that isn't there yet")
    staging = archive.with_name(f"{files.TEMPORARY}{secrets.token_hex(8)}")
    try:
        files.make_folder(staging)
        copy_checkpoint(located, LocalStore(staging / "files"))
        _pack(staging / "files" / located.job, staging / "packed.tar")
        files.disk.link(staging / "packed.tar", archive)
        files.disk.sync_folder(archive.parent)
    except OSError as error:
        raise Unavailable(f"the copy can't be written to {archive}: {error}") from error
    finally:
        files.discard(staging)


def _pack(folder: Path, packed: Path) -> None:
    descriptor = files.disk.create(packed)
    # Dereferenced, or a file with a second name would be stored as a link to it.
    with io.FileIO(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:", dereference=True) as tar:
        tar.add(folder, folder.name, filter=_plain)
    with packed.open("rb") as again:
        files.disk.sync(again.fileno())


def unpack(archive: Path, into: Path) -> None:
    """Take an archive out into a new folder; raise ForeignFile if it is no archive of a checkpoint."""
    files.make_folder(into)
    try:
        with tarfile.open(archive, "r:", tarinfo=_Bounded) as tar:
            for count, member in enumerate(tar, start=1):
                if count > MEMBERS_MAX:
                    raise ForeignFile(f"{archive} holds more files than any checkpoint")
                _take_out(tar, member, into, archive)
            _refuse_early_end(tar, archive)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise ForeignFile(f"{archive} is not an archive of a checkpoint, or it was cut: {error}") from error
    except FileExistsError as error:
        raise ForeignFile(f"{archive} holds a file twice: nothing of it is used") from error
    except OSError as error:
        raise Unavailable(f"{archive} can't be unpacked into {into}: {error.strerror}") from error
    homes = sorted(path.name for path in into.iterdir())
    if len(homes) != 1 or not (into / homes[0] / LEDGER).is_dir():
        raise ForeignFile(
            f"{archive} is not an archive of a checkpoint: it has to hold one job, with its ledger, and holds "
            f"{', '.join(homes) or 'nothing'}"
        )


def _refuse_early_end(tar: tarfile.TarFile, archive: Path) -> None:
    """Python's reader takes a member that it can't make sense of for the end."""
    with archive.open("rb") as file:
        file.seek(tar.offset)
        if file.read(tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
            raise ForeignFile(
                f"{archive} was cut or damaged: what stands at byte {tar.offset:,} is no file, and no end"
            )


def _take_out(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path, archive: Path) -> None:
    if member.isdir():
        return
    if not member.isreg() or member.issparse() or not _is_of_a_copy(member.name):
        raise ForeignFile(f"{archive} holds {member.name!r}, which no copy of a checkpoint has: nothing of it is used")
    target = into / tarfile.data_filter(member, str(into)).name
    files.make_folder(target.parent)
    reading = tar.extractfile(member)
    assert reading is not None
    with reading, io.FileIO(files.disk.create(target), "wb") as writing:
        _copy(reading, writing, member, archive)
        files.disk.sync(writing.fileno())


def _copy(reading: IO[bytes], writing: io.FileIO, member: tarfile.TarInfo, archive: Path) -> None:
    copied = 0
    while chunk := reading.read(_CHUNK_BYTES):
        files.write_whole(writing.fileno(), chunk)
        copied += len(chunk)
    if copied != member.size:
        raise ForeignFile(f"{archive} was cut: {member.name} has {copied} bytes of {member.size}")


def _is_of_a_copy(name: str) -> bool:
    job, _, rest = name.partition("/")
    try:
        checked_name("job", job)
    except TwoPhaseCommitError:
        return False
    return re.fullmatch(f"{LEDGER_FILE}|{CHECKPOINT_FILE}", rest, re.ASCII) is not None


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without what says whose machine it was made on, and without a second name for the ledger's entry."""
    if Path(member.name).name.startswith("."):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
