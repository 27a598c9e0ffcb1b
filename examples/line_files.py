"""Lines of the files in a folder, and the model for writing a source of your own.

Every file belongs to a bucket, by its name; a bucket is a split, and is read by one subtask. All of a source's duties
can be seen here:

    plan        on the driver: one split for each bucket; each starts where the checkpoint stands, else at the beginning
    poll        read the next lines, of old files and of new ones
    positions   how far each file of a bucket was read, in bytes; with every checkpoint this is stored
    check_input before a checkpoint counts: what was read is what is there still
    unreadable  on the driver, before something is read again: what isn't there any more
    bound       stop at the end that the files have now, as with --until-end

A line is there when its newline is: what stands behind the last newline is left until the rest of the line has come.
Files may grow, and new ones may come while the job runs. None may be removed, cut or written anew while a job that
reads them has checkpoints. The folder must be one that the driver and every worker see under the same path.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twopc import Batch, ConfigurationError
from twopc.connect import (
    CheckpointId,
    JobContext,
    Row,
    Source,
    SourcePlanner,
    SourceReader,
    Split,
    SplitPosition,
    SubtaskContext,
)

Read = dict[str, int]
"""By the name of a file, how many of its bytes were read."""

LOOK_SECONDS = 0.5
"""How often a reader that has read all there was looks for more."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line as the framework and the job see it: its file is the topic, its first byte the offset."""

    file: str
    bucket: int
    start: int
    text: bytes

    def topic(self) -> str:
        return self.file

    def partition(self) -> int:
        return self.bucket

    def offset(self) -> int:
        return self.start

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return self.text

    def timestamp(self) -> tuple[int, int]:
        return (0, -1)

    def headers(self) -> None:
        return None


class LineFiles(Source):
    """Reads every line, without its newline, of the files in a folder that match a pattern.

    `buckets` is how many subtasks can read at once. It stays the same as long as the job's checkpoints are used.
    """

    def __init__(self, folder: str | Path, *, pattern: str = "*", buckets: int = 4) -> None:
        if buckets < 1:
            raise ConfigurationError(f"LineFiles needs one bucket or more, not {buckets}")
        self.folder = Path(folder)
        self.pattern = pattern
        self.buckets = buckets
        self.inputs = (str(self.folder),)

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return LinePlanner(self)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        return LineReader(self, splits)

    def input_of(self, split: str) -> str:
        return split.rpartition("#")[0]

    def precedes(self, position: SplitPosition, later: SplitPosition) -> bool:
        before, after = _read(position.position), _read(later.position)
        return any(before.get(name, 0) < size for name, size in after.items())

    def describe(self) -> Mapping[str, Any]:
        return {"type": "LineFiles", "folder": str(self.folder), "pattern": self.pattern, "buckets": self.buckets}

    def files(self, bucket: int) -> list[Path]:
        """Return the files of a bucket that are there now, in the order of their names."""
        found = (
            path for path in self.folder.glob(self.pattern) if zlib.crc32(path.name.encode()) % self.buckets == bucket
        )
        return sorted(path for path in found if path.is_file())

    def ends(self, bucket: int) -> Read:
        """Return where the last whole line of each file of a bucket ends now."""
        return {path.name: _end_of_lines(path) for path in self.files(bucket)}

    def missing(self, read: Read) -> list[str]:
        """Say which files are gone, or shorter than what was read of them."""
        found = []
        for name, size in read.items():
            path = self.folder / name
            if not path.is_file():
                found.append(f"{path} is gone, of which {size} bytes were read")
            elif path.stat().st_size < size:
                found.append(f"{path} has {path.stat().st_size} bytes now, and {size} of it were read")
        return found


class LinePlanner(SourcePlanner):
    """Makes a split of each bucket."""

    def __init__(self, source: LineFiles) -> None:
        self._source = source

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        if not self._source.folder.is_dir():
            raise ConfigurationError(f"there is no folder {self._source.folder}: create it, or name another")
        return [self._split(bucket, restored, bounded) for bucket in range(self._source.buckets)]

    def _split(self, bucket: int, restored: Mapping[str, SplitPosition], bounded: bool) -> Split:
        name = f"{self._source.folder}#{bucket}"
        read = _read(restored[name].position) if name in restored else {}
        if wrong := self._source.missing(read):
            raise ConfigurationError(f"{wrong[0]}: put it back as it was, or start anew with --from none")
        stop = _position(self._source.ends(bucket)) if bounded else None
        return Split(name, bucket, _position(read), stop)

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        wrong = {held: self._source.missing(_read(held.position)) for held in positions}
        return {held: "; ".join(each) for held, each in wrong.items() if each}


@dataclass(slots=True)
class Bucket:
    """The position of the files of one split, and where to stop, if anywhere."""

    split: str
    number: int
    read: Read
    stop: Read | None

    @property
    def finished(self) -> bool:
        return self.stop is not None and all(self.read.get(name, 0) >= end for name, end in self.stop.items())


class LineReader(SourceReader):
    """Reads the files of its buckets, one after the other."""

    def __init__(self, source: LineFiles, splits: Sequence[Split]) -> None:
        self._source = source
        self._buckets = [
            Bucket(split.id, split.partition, _read(split.start), None if split.stop is None else _read(split.stop))
            for split in splits
        ]
        self._look_at = 0.0

    def poll(self, timeout: float, most: int) -> Batch | None:
        lines = list(self._lines(most)) if time.monotonic() >= self._look_at else []
        if not lines:
            # Whoever has read everything looks again a little later, not at every poll.
            self._look_at = max(self._look_at, time.monotonic() + min(timeout, LOOK_SECONDS))
            time.sleep(timeout)
            return None
        return Batch(lines, [line.text for line in lines])

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        read = {bucket.number: dict(bucket.read) for bucket in self._buckets}
        for row in waiting:
            files, name = read[row.partition() or 0], str(row.topic())
            files[name] = min(files[name], row.offset() or 0)
        return tuple(SplitPosition(each.split, each.number, _position(read[each.number])) for each in self._buckets)

    def check_input(self, checkpoint_id: CheckpointId) -> None:
        for bucket in self._buckets:
            if wrong := self._source.missing(bucket.read):
                raise ConfigurationError(wrong[0])

    def bound(self) -> bool:
        for bucket in self._buckets:
            bucket.stop = bucket.stop if bucket.stop is not None else self._source.ends(bucket.number)
        return True

    def finished(self) -> bool:
        return all(bucket.finished for bucket in self._buckets)

    def _lines(self, most: int) -> Iterator[Line]:
        for bucket in self._buckets:
            for path in self._source.files(bucket.number):
                for line in self._lines_of(bucket, path):
                    yield line
                    most -= 1
                    if most == 0:
                        return

    def _lines_of(self, bucket: Bucket, path: Path) -> Iterator[Line]:
        start, end = bucket.read.get(path.name, 0), path.stat().st_size
        if bucket.stop is not None:
            end = min(end, bucket.stop.get(path.name, 0))
        if start >= end:
            return
        with path.open("rb") as stream:
            stream.seek(start)
            while start < end and (text := stream.readline()).endswith(b"\n"):
                bucket.read[path.name] = start + len(text)
                yield Line(path.name, bucket.number, start, text[:-1])
                start += len(text)


def _position(read: Read) -> list[Any]:
    """People are shown the first element of a position: how many bytes of the bucket were read."""
    return [sum(read.values()), read]


def _read(position: Any) -> Read:
    _, read = position
    return dict(read)


def _end_of_lines(path: Path) -> int:
    """Return where the last newline of a file is, and 0 if it has none."""
    step, end = 65_536, path.stat().st_size
    with path.open("rb") as stream:
        while end > 0:
            start = max(0, end - step)
            stream.seek(start)
            if (found := stream.read(end - start).rfind(b"\n")) >= 0:
                return start + found + 1
            end = start
    return 0
