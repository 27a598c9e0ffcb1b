"""The named places where a test or a drill may hold, kill or pause a process; no-ops otherwise.

Armed by the environment variable TWOPC_CRASH_POINT, which child processes inherit:

    <point>[,checkpoint=N][,subtask=I],once=FILE[,hold]

The first process that reaches the point, at checkpoint N or a later one, and in subtask I if given, creates FILE,
holding its process id, and kills itself with SIGKILL; with `hold` it stops there instead, until FILE.release exists or
it is killed from outside. FILE exists for good then, so that no process after it stops there again.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from twopc.errors import ConfigurationError

VARIABLE = "TWOPC_CRASH_POINT"


class CrashPoint(Enum):
    """One place each in the code; the value says what has happened there and what has not."""

    BEFORE_PRE_COMMIT = "triggered, before anything is flushed"
    IN_PRE_COMMIT_AFTER_FLUSH = "flushed, before the positions are in the transaction"
    AFTER_PRE_COMMIT = "pre-committed, before the snapshot is taken"
    AFTER_SNAPSHOT = "snapshot taken, before it is stored"
    AFTER_STORE = "snapshot stored, before it is acknowledged"
    AFTER_ACK = "acknowledged, before anything was heard"
    BEFORE_COMMIT = "completion known, before any transaction is committed"
    AFTER_END_TXN = "one transaction committed, before the next and before anyone is told"
    AFTER_COMMIT = "everything committed, before the coordinator is told"
    AFTER_COMMITTED_SENT = "the coordinator is told"
    COORDINATOR_AFTER_RESERVE = "id stored, before any trigger is sent"
    COORDINATOR_AFTER_ACKS = "all acknowledged, before the metadata is stored"
    COORDINATOR_AFTER_METADATA = "metadata stored, before the completion record"
    COORDINATOR_AFTER_COMPLETION = "completion record created, before anyone is told"
    COORDINATOR_AFTER_NOTIFY = "everyone is told"
    DRIVER_BEFORE_SETTLE = "attempt started, before any committable is settled"
    DRIVER_AFTER_SETTLE = "committables settled, before the confirmations are stored"
    DRIVER_AFTER_CONFIRM = "confirmations stored, before lingering transactions are aborted"
    DRIVER_AFTER_ABORT_LINGERING = "lingering transactions aborted, before any subtask is started"


@dataclass(frozen=True, slots=True)
class _Armed:
    point: CrashPoint
    checkpoint: int
    subtask: int | None
    once: Path
    hold: bool


def _parse(text: str) -> _Armed:
    name, *options = text.split(",")
    values = dict(option.partition("=")[::2] for option in options)
    try:
        return _Armed(
            point=CrashPoint[name.strip().upper().replace("-", "_")],
            checkpoint=int(values.get("checkpoint", 0)),
            subtask=int(values["subtask"]) if "subtask" in values else None,
            once=Path(values["once"]),
            hold="hold" in values,
        )
    except (KeyError, ValueError) as error:
        raise ConfigurationError(f"{VARIABLE}={text!r} can't be understood: {error}; see twopc.crashpoints") from error


_armed = _parse(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def reached(point: CrashPoint, *, checkpoint: int = 0, subtask: int = -1) -> None:
    """Say that this place was reached; end or hold the process here if it is armed for that."""
    armed = _armed
    if armed is None or armed.point is not point or checkpoint < armed.checkpoint:
        return
    if armed.subtask is not None and armed.subtask != subtask:
        return
    try:
        descriptor = os.open(armed.once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return
    os.write(descriptor, b"%d\n" % os.getpid())
    os.close(descriptor)
    if not armed.hold:
        os.kill(os.getpid(), signal.SIGKILL)
    release = armed.once.with_name(armed.once.name + ".release")
    while not release.exists():
        time.sleep(0.005)
