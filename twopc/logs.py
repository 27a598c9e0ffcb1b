"""The logs of a job's processes: records as lines of text or of JSON, on standard error.

What a user's function prints or logs goes the same way, with its text, its logger's name and its level. Standard output
belongs to the answer of a command, so nothing is printed there while a job runs.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TextIO

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
LEVELS = ("debug", "info", "warning", "error")

NEVER_HIDDEN = "twopc.consequences"
"""The logger of warnings that are shown whatever the level: of what readers will see twice."""

_TALKATIVE = ("py4j", "kafka")
"""Libraries whose INFO is of interest only to those who debug them."""

_RECORD_BEGINS = '{"time":'


def configure_logging(level: str, form: str, *, subtask: int | None = None) -> None:
    """Write the log records of this process to standard error; `subtask` is whose process it is, if it is one's.

    A later call replaces an earlier one; handlers that somebody else has set up stay.
    """
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, _StandardError):
            root.removeHandler(handler)
    ours = _StandardError(JsonLines(subtask) if form == JSON else TextLines(subtask))
    if level != "debug":
        ours.addFilter(_is_not_py4js)
    root.addHandler(ours)
    root.setLevel(level.upper())
    logging.getLogger(NEVER_HIDDEN).setLevel(logging.WARNING)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET if level == "debug" else logging.WARNING)


def writes_json() -> bool:
    """Whether this process was configured to write JSON, so that every line on standard error should be."""
    handlers = logging.getLogger().handlers
    return any(isinstance(handler, _StandardError) and isinstance(handler.formatter, JsonLines) for handler in handlers)


@contextmanager
def prints_on_stderr(form: str, *, subtask: int | None = None) -> Iterator[None]:
    """Meanwhile let what is printed go to standard error: as it is, or as JSON with the stream in place of a logger."""
    below = sys.stderr
    with ExitStack() as restoring:
        if form == JSON:
            formatter = JsonLines(subtask)
            restoring.enter_context(redirect_stdout(_Prints("stdout", formatter, below)))
            restoring.enter_context(redirect_stderr(_Prints("stderr", formatter, below)))
        else:
            restoring.enter_context(redirect_stdout(below))
        yield


@contextmanager
def output_of_subtask(subtask: int, level: str, form: str) -> Iterator[None]:
    """Meanwhile write what this process logs and prints as a subtask's. Spark's workers serve others afterwards."""
    root = logging.getLogger()
    handlers, before = root.handlers[:], root.level
    configure_logging(level, form, subtask=subtask)
    try:
        with prints_on_stderr(form, subtask=subtask):
            yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(before)


def pass_on(
    pipe: IO[str], without: Collection[str] = (), hear: Callable[[str], None] = lambda _: None
) -> threading.Thread:
    """Write what comes through a pipe to standard error, line by line, on a thread that ends when it is closed.

    `hear` is told of each line before it is written, on that thread.
    """

    def read() -> None:
        with pipe:
            for line in pipe:
                text = line.rstrip("\n")
                hear(text)
                if text.rstrip() not in without:
                    # Whoever listened may be gone; a pipe that nobody empties would hold up the process that writes.
                    with suppress(OSError, ValueError):
                        sys.stderr.write(f"{text}\n")
                        sys.stderr.flush()

    thread = threading.Thread(target=read, name="twopc-said", daemon=True)
    thread.start()
    return thread


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """Leave out what py4j says on the root logger, with a traceback: that a JVM which is gone does not answer."""
    return record.name != "root" or "py4j" not in Path(record.pathname).parts


class TextLines(logging.Formatter):
    """TIME LEVEL LOGGER: MESSAGE, in the local time."""

    def __init__(self, subtask: int | None = None) -> None:
        super().__init__(f"%(asctime)s %(levelname)s %(name)s{_of(subtask)}: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        return datetime.fromtimestamp(record.created).astimezone().isoformat(" ", "milliseconds")


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message; subtask and traceback where there is one.

    A record's attribute `fields`, a dict, is added.
    """

    def __init__(self, subtask: int | None = None) -> None:
        super().__init__()
        self._subtask = {} if subtask is None else {"subtask": subtask}

    def format(self, record: logging.LogRecord) -> str:
        body: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            **self._subtask,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            body["traceback"] = self.formatException(record.exc_info)
        return json.dumps(body, default=str)


class LineStream(io.TextIOBase):
    """A text stream that hands over whole lines; any thread may write."""

    def __init__(self, take: Callable[[str], object]) -> None:
        super().__init__()
        self._take = take
        self._lock = threading.RLock()
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in lines:
                self._take(line)
        return len(text)

    def close(self) -> None:
        with self._lock:
            if self._rest:
                rest, self._rest = self._rest, ""
                self._take(rest)
        super().close()


class _StandardError(logging.Handler):
    """Writes to what standard error is at the moment, under prints that are made JSON of."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            below = getattr(sys.stderr, "below", sys.stderr)
            below.write(f"{self.format(record)}\n")
            below.flush()
        except Exception:  # noqa: BLE001 - logging's own way with a stream that is gone
            self.handleError(record)


class _Prints(LineStream):
    """Printed lines as JSON, but for those that are records already: a worker's, which came through a pipe."""

    def __init__(self, stream: str, formatter: JsonLines, below: TextIO) -> None:
        super().__init__(self._write_line)
        self.below = below
        self._stream = stream
        self._formatter = formatter

    def _write_line(self, line: str) -> None:
        if not line.startswith(_RECORD_BEGINS):
            created = time.time()
            printed = {"name": self._stream, "levelname": "INFO", "levelno": logging.INFO, "msg": line}
            line = self._formatter.format(logging.makeLogRecord(printed | {"created": created}))
        self.below.write(f"{line}\n")
        self.below.flush()


def _of(subtask: int | None) -> str:
    return "" if subtask is None else f" (subtask {subtask})"
