"""`python -m twopc.drill.driver JOB_FILE EVENTS_FILE`: runs a job in plain processes, to be struck by faults.

As `twopc run --host process --until-end`, with its settings from the environment; but each event is a line of JSON in a
file, so that a drill can follow what several drivers are told.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from dataclasses import asdict, fields
from typing import Any

from twopc.config import RunSettings
from twopc.driver.run import run
from twopc.errors import ProtocolViolation, TwoPhaseCommitError, UserCodeError
from twopc.loader.job_loader import load_job
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_events import JobEvent
from twopc.protocol.messages import Progress
from twopc.worker.parent_watchdog import end_with_parent

NO_FAULT_DOES_THIS = 70
"""What it exits with where the job itself can't go on: other codes may be the doing of a fault."""


def encode(event: JobEvent) -> str:
    return json.dumps(asdict(event)) + "\n"


def decode(line: str) -> JobEvent:
    """Return the event of a line, as far as a timeline and a view need it."""
    body: dict[str, Any] = json.loads(line)
    told = body["progress"]
    progress = None
    if told is not None:
        told["pending_transactions"] = tuple(told["pending_transactions"])
        progress = Progress(**{each.name: told[each.name] for each in fields(Progress)})
    return JobEvent(
        kind=str(body["kind"]),
        job=str(body["job"]),
        message=str(body["message"]),
        attempt=AttemptId(body["attempt"]),
        time_ms=int(body["time_ms"]),
        checkpoint_id=CheckpointId(body["checkpoint_id"]),
        subtask=SubtaskIndex(body["subtask"]),
        duration_ms=float(body["duration_ms"]),
        pause_ms=float(body["pause_ms"]),
        pid=int(body["pid"]),
        progress=progress,
    )


def main() -> int:
    """Run the job; return the exit code that `twopc run` would, or that no fault explains how it ended."""
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kafka").setLevel(logging.WARNING)
    job_file, events = sys.argv[1:]

    def note(event: JobEvent) -> None:
        descriptor = os.open(events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, encode(event).encode())
        os.close(descriptor)

    try:
        report = run(
            load_job(job_file), RunSettings.resolve(host="process", until_end=True), on_event=note, job_file=job_file
        )
    except TwoPhaseCommitError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return NO_FAULT_DOES_THIS if isinstance(error, UserCodeError | ProtocolViolation) else error.exit_code
    return 130 if report.stopped else 0


if __name__ == "__main__":
    sys.exit(main())
