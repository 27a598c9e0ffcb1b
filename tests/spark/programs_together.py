"""Runs example programs beside one another on one Spark session, each with a driver of its own in this process.

    python -m tests.spark.programs_together ROOM.json

Every program has a broker of its own choosing, because the small ones have topics of the same names. The process ends
with 0 when all have come to the end of their input, with 1 as soon as one ends otherwise.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.spark.jvms import local_session
from twopc import events
from twopc.config import RunSettings
from twopc.driver.run import run
from twopc.loader.job_loader import load_job
from twopc.logs import configure_logging
from twopc.spark.configuration import ALWAYS

PARALLELISM = 2


@dataclass(frozen=True, slots=True)
class ConcurrentPrograms:
    """The programs that run, by their files; their brokers; the folders of their checkpoints and workers' ids."""

    servers: Mapping[str, str]
    folder: str
    until_end: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def command(self, file: Path) -> list[str]:
        """Write this down; return the command that does it."""
        file.write_text(json.dumps(asdict(self)))
        return [sys.executable, "-m", "tests.spark.programs_together", str(file)]

    def workers(self, program: str) -> list[int]:
        """The processes that have been workers of a program, the latest last."""
        file = self._workers(program)
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [int(line) for line in lines if line.endswith("\n")]

    def _workers(self, program: str) -> Path:
        return Path(self.folder) / f"{Path(program).stem}.workers"

    def run(self) -> None:
        """Run all of them to their ends; raise what the first ends with that does not come to its own."""
        local_session("programs", f"local[{PARALLELISM * len(self.servers)}]", **ALWAYS)
        with ThreadPoolExecutor(len(self.servers)) as pool:
            for ended in as_completed([pool.submit(self._run_one, program) for program in self.servers]):
                ended.result()

    def _run_one(self, program: str) -> None:
        settings = RunSettings.resolve(
            bootstrap_servers=self.servers[program],
            checkpoint_dir=str(Path(self.folder) / f"{Path(program).stem}-checkpoints"),
            parallelism=PARALLELISM,
            until_end=self.until_end,
            **self.settings,
        )
        with self._workers(program).open("a", buffering=1) as workers:

            def note(event: events.Event) -> None:
                if isinstance(event, events.SubtaskAttached):
                    print(event.pid, file=workers)

            run(load_job(program), settings, on_event=note)


def main() -> None:
    configure_logging("info", "text")
    try:
        ConcurrentPrograms(**json.loads(Path(sys.argv[1]).read_text())).run()
    except BaseException:  # noqa: BLE001  whatever it is, the others must not hold this process up
        traceback.print_exc()
        os._exit(1)
    # Threads of Spark's gateway may linger.
    os._exit(0)


if __name__ == "__main__":
    main()
