"""Looks for transactions that zombies of earlier attempts open late, for as long as an attempt runs.

On a thread of its own: a broker that gives no answer must not keep the driver from seeing that subtasks have failed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from twopc.errors import Fenced, TwoPhaseCommitError

log = logging.getLogger(__name__)

PAUSE_SECONDS = 30.0
LOOK_SECONDS = 0.2
CLOSE_SECONDS = 5.0
"""How long to wait for a sweep at the end. One that takes longer does no harm: it touches no later attempt's ids."""


class Sweeper:
    """Calls `sweep` as soon as `wanted` says so, then every `pause` seconds until closed, and once more at the end.

    `fenced` is what a sweep learned of another run that has taken over.
    """

    def __init__(
        self, sweep: Callable[[], Sequence[str]], wanted: Callable[[], bool], pause: float = PAUSE_SECONDS
    ) -> None:
        self._sweep = sweep
        self._wanted = wanted
        self._pause = pause
        self._closing = threading.Event()
        self._last = False
        self.fenced: Fenced | None = None
        self._thread = threading.Thread(target=self._run, name="twopc-sweeper", daemon=True)
        self._thread.start()

    def close(self, *, finished: bool) -> None:
        """End; if the job has finished, after one more sweep: nobody may come by for a long time."""
        self._last = finished
        self._closing.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._wanted():
            if self._closing.wait(LOOK_SECONDS):
                break
        while not self._closing.is_set():
            self._closing.wait(self._pause if self._once() else LOOK_SECONDS)
        if self._last:
            self._once()

    def _once(self) -> bool:
        """Sweep; return whether it worked. Whatever goes wrong here must not end a job that is well."""
        try:
            names = self._sweep()
        except Fenced as error:
            self.fenced = error
            return True
        except TwoPhaseCommitError as error:
            log.debug("lingering transactions were not looked for again yet: %s", error)
            return False
        except Exception:
            log.exception("lingering transactions could not be looked for again")
            return True
        for name in names:
            log.warning("lingering transaction %s of a zombie: aborted", name)
        return True
