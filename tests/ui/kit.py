"""Jobs as a page shows them: one that runs, from a description, and the ledger of one that does not."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.metrics.kit import RUNNING
from tests.stored_job import JOB, StoredJob
from twopc.protocol.job_description import JobDescription
from twopc.storage.local import LocalStore
from twopc.storage.store import jobs_in
from twopc.ui.document import OwnFacts
from twopc.ui.jobs import Jobs
from twopc.ui.pages import UiPages
from twopc.web.door import Door
from twopc.web.server import WebServer

GRAPH = {
    "job": JOB,
    "operators": [
        {"id": "orders", "inputs": [], "what": "kafka(topics=['in'])", "errors_to": "dead-letters-wrong"},
        {"id": "count", "inputs": ["orders"], "what": "stateful_map(count)"},
        {"id": "priced", "inputs": ["count"], "what": "kafka(topic=out)"},
        {"id": "dead-letters-wrong", "inputs": [], "what": "kafka(topic=wrong)"},
    ],
}

CHECKPOINTS = "checkpoints"

RUNS: JobDescription = replace(RUNNING, job=JOB)


@dataclass
class Shown:
    """What the process of a job would say when it is asked; a test changes it."""

    folder: Path
    described: JobDescription | None = None
    letters: list[dict[str, Any]] = field(default_factory=list)
    error: Exception | None = None
    now: float = 0.0

    def jobs(self) -> Jobs:
        store = LocalStore(self.folder / CHECKPOINTS)
        own = OwnFacts(GRAPH, {"parallelism": "2"}, {"python": "3.11"}, ("wrong",))
        return Jobs(store, lambda: jobs_in(store), self._describe, own, lambda _: self.letters, clock=lambda: self.now)

    def _describe(self, job: str) -> JobDescription | None:
        if self.error is not None:
            raise self.error
        return self.described

    def server(self) -> WebServer:
        """Return one that serves the page of these jobs."""
        return WebServer("ui", Door("127.0.0.1"), 0, [UiPages(self.jobs())])


def stored_job(folder: Path) -> StoredJob:
    """Return a job with two completed checkpoints, of which the second is not confirmed, and a state by key."""
    job = StoredJob(folder / CHECKPOINTS, keyed={"count": {b"LGA": b"3"}})
    job.checkpoint()
    job.checkpoint(confirmed=False)
    return job


def asked(address: str, path: str) -> tuple[int, Any]:
    """Return status and JSON of an answer."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
