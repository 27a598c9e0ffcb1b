"""The page, its files, and the JSON behind it, by their paths."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from twopc.errors import ConfigurationError, TwoPhaseCommitError
from twopc.inspect.key_text import KeyForm
from twopc.ui.jobs import Jobs
from twopc.ui.state import state_of_key, states_of
from twopc.web.answer import Answer, EventStream, Pages, Question

TICK_SECONDS = 1.0
"""How often what is shown moves. Who comes between two ticks is a tick behind at most."""

BEAT_SECONDS = 5.0
"""How often something is sent though nothing moves: so a reader that is gone is noticed."""

JSON = "application/json"
API = "/api/jobs"

_OF_JOB = ("", "events", "states", "state", "letters")
"""What is asked of a job, behind its name."""

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/graph.js": ("graph.js", "text/javascript; charset=utf-8"),
    "/timeline.js": ("timeline.js", "text/javascript; charset=utf-8"),
    "/table.js": ("table.js", "text/javascript; charset=utf-8"),
}


class UiPages(Pages):
    """Of jobs its coordinator and its ledger are asked; problems are JSON too, with their text."""

    names = ("/", API, *(f"{API}/JOB{each and '/'}{each}" for each in _OF_JOB))

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._made: dict[str, tuple[float, bytes]] = {}
        self._lock = threading.Lock()

    def answer(self, question: Question) -> Answer | EventStream | None:
        if question.path in _FILES:
            name, content_type = _FILES[question.path]
            return Answer(files("twopc.ui").joinpath("page", name).read_bytes(), content_type)
        try:
            return self._asked(question.path, question.parameters)
        except ConfigurationError as error:
            return _json_of({"problem": str(error)}, HTTPStatus.NOT_FOUND)
        except TwoPhaseCommitError as error:
            return _json_of({"problem": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE)

    def _asked(self, path: str, given: Mapping[str, str]) -> Answer | EventStream | None:
        jobs = self._jobs
        if path == API:
            return _json_of(jobs.overview())
        job, _, what = path.removeprefix(f"{API}/").partition("/")
        if not path.startswith(f"{API}/") or what not in _OF_JOB:
            return None
        jobs.require(job)
        match what:
            case "events":
                return EventStream(self._documents(job))
            case "states":
                return _json_of(states_of(jobs.store, job))
            case "state":
                return _json_of(self._state(job, given))
            case "letters":
                return _json_of(jobs.dead_letters(given.get("topic", "")))
            case _:
                return _json_of(jobs.document(job))

    def _state(self, job: str, given: Mapping[str, str]) -> Any:
        form = given.get("as", KeyForm.TEXT)
        if form not in list(KeyForm):
            raise ConfigurationError(f"as={form!r} is none of {', '.join(KeyForm)}")
        return state_of_key(self._jobs.store, job, given.get("state", ""), given.get("key", ""), KeyForm(form))

    def _documents(self, job: str) -> Iterator[bytes]:
        """Yield a job as an event whenever it has moved."""
        shown, beat = b"", time.monotonic()
        while True:
            now = self._of_this_tick(job)
            if now != shown:
                yield b"data: " + now + b"\n\n"
                shown, beat = now, time.monotonic()
            elif time.monotonic() - beat >= BEAT_SECONDS:
                yield b": nothing has moved\n\n"
                beat = time.monotonic()
            else:
                yield b""
            time.sleep(TICK_SECONDS)

    def _of_this_tick(self, job: str) -> bytes:
        """Return a job's document, which is made once a tick however many look."""
        with self._lock:
            at, made = self._made.get(job, (0.0, b""))
            if not made or time.monotonic() - at >= TICK_SECONDS:
                made = _dumped(self._jobs.document(job))
                self._made[job] = time.monotonic(), made
            return made


def _json_of(found: Any, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer(_dumped(found), JSON, status)


def _dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
