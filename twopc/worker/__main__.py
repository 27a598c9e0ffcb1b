"""`python -m twopc.worker JOB_FILE PARENT`: one subtask in a process of its own.

Its spec is JSON on standard input. It waits for that with all imported that it needs, and ends where none comes.
"""

from __future__ import annotations

import json
import signal
import sys
from types import FrameType

# What a job's file asks for: it is here when the spec comes.
from twopc import Job, KafkaSink, KafkaSource  # noqa: F401
from twopc.driver.processes import SAID_WHY, TOLD_TO_END
from twopc.errors import TwoPhaseCommitError
from twopc.loader.job_loader import load_job
from twopc.logs import output_of_subtask
from twopc.protocol.codec import from_json
from twopc.runtime.spec import SubtaskSpec
from twopc.termination import Terminated
from twopc.worker.bootstrap import run_subtask
from twopc.worker.parent_watchdog import end_forked_with_this, end_with_parent


def _on_term(_number: int, _frame: FrameType | None) -> None:
    raise Terminated(143)


def main() -> int:
    """Run the subtask; its error has been told to the coordinator already."""
    end_with_parent(int(sys.argv[2]))
    end_forked_with_this()
    signal.signal(signal.SIGTERM, _on_term)
    if not (told := sys.stdin.read()):
        return TOLD_TO_END
    spec = from_json(SubtaskSpec, json.loads(told))
    try:
        with output_of_subtask(spec.subtask, spec.settings.log_level, spec.settings.log_format):
            run_subtask(lambda: load_job(sys.argv[1]), spec)
    except TwoPhaseCommitError:
        return SAID_WHY
    return TOLD_TO_END


if __name__ == "__main__":
    sys.exit(main())
