"""`python -m twopc.faults.driver JOB_FILE EVENTS_FILE`: runs a job in plain processes, to be struck.

As `twopc run --host process --until-end`, with its settings from the environment; but each event is a line of JSON in a
file, so that whoever strikes can follow what several drivers are told.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import nullcontext
from dataclasses import asdict

from twopc import events
from twopc.config import RunSettings
from twopc.driver.host import Host
from twopc.driver.processes import plain_processes_begun
from twopc.driver.run import run
from twopc.errors import ProtocolViolation, TwoPhaseCommitError, UserCodeError
from twopc.loader.job_loader import load_job
from twopc.protocol.codec import from_json, to_json
from twopc.worker.parent_watchdog import end_with_parent

NO_FAULT_DOES_THIS = 70
"""The exit code where the job itself can't go on: other codes may be the doing of a fault."""


def encode(event: events.Event) -> str:
    return json.dumps(to_json(event, events.Event)) + "\n"


def decode(line: str) -> events.Event:
    event: events.Event = from_json(events.Event, json.loads(line))
    return event


def main(host: Host | None = None) -> int:
    """Run the job and print its report; return the exit code of `twopc run`, or that no fault explains how it ended.

    `host` is where its subtasks run, plain processes unless given.
    """
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kafka").setLevel(logging.WARNING)
    job_file, events_file = sys.argv[1:]

    def note(event: events.Event) -> None:
        descriptor = os.open(events_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, encode(event).encode())
        os.close(descriptor)

    try:
        settings = RunSettings.resolve(host="process", until_end=True)
        with nullcontext(host) if host else plain_processes_begun(settings, job_file) as runs_on:
            report = run(load_job(job_file), settings, on_event=note, host=runs_on)
    except TwoPhaseCommitError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return NO_FAULT_DOES_THIS if isinstance(error, UserCodeError | ProtocolViolation) else error.exit_code
    sys.stdout.write(json.dumps(asdict(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
