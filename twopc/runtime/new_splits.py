"""New splits of an input that a subtask reads by itself: looked for beside the data loop, which takes them up.

No driver plans that input, and no checkpoint has positions of it: so nobody else would notice.
"""

from __future__ import annotations

import logging
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Self

from twopc.context import SubtaskContext
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.source import Source, Split

log = logging.getLogger(__name__)


class NewSplits:
    """Asks every so often, on a thread of its own, until it is closed. Nobody waits for an answer."""

    def __init__(self, source: Source, context: SubtaskContext, read: list[Split], interval_ms: int) -> None:
        self._source = source
        self._context = context
        self._read = list(read)
        self._seconds = interval_ms / 1000
        self._found: SimpleQueue[list[Split]] = SimpleQueue()
        self._closing = Event()
        self._logged = ""
        Thread(target=self._run, name="twopc-new-splits", daemon=True).start()

    @classmethod
    def of(cls, source: Source, context: SubtaskContext, read: list[Split]) -> Self | None:
        """Return one where the source is to be looked at while it is read."""
        if source.watch_ms is None or not source.reads_new or context.settings.until_end:
            return None
        return cls(source, context, read, source.watch_ms)

    def take(self) -> list[Split]:
        """Return what was found since, at once."""
        try:
            return self._found.get_nowait()
        except Empty:
            return []

    def close(self) -> None:
        """End soon. A question that is under way is left to itself."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(self._seconds):
            try:
                with self._source.open_planner(self._context) as planner:
                    found = planner.added(self._read)
            except Unavailable as error:
                log.debug("whether there is new input could not be told: %s", error)
            except TwoPhaseCommitError as error:
                self._say(str(error))
            else:
                if found:
                    self._read += found
                    self._found.put(found)

    def _say(self, why: str) -> None:
        if why != self._logged:
            log.warning("new input of a broadcast table can't be read: %s", why)
        self._logged = why
