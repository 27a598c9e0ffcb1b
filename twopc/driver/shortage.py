"""Says what subtasks wait for that have not started, once that takes long, and again every half minute."""

from __future__ import annotations

from collections.abc import Callable

from twopc.driver.host import Stage

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
SAY_AGAIN_SECONDS = 30.0


class Shortage:
    """Looks at one stage, at most once a second; what it lacks is said when it changes, too."""

    def __init__(self, stage: Stage, say: Callable[[str], None]) -> None:
        self._stage = stage
        self._say = say
        self._since: float | None = None
        self._looked = 0.0
        self._said = ""
        self._said_at = 0.0

    def look(self, now: float) -> None:
        """Ask the stage what it lacks, and say so if it is time to."""
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        shortage = self._stage.shortage()
        if shortage is None:
            self._since = None
            return
        self._since = now if self._since is None else self._since
        patient = now - self._since < PATIENCE_SECONDS
        if not patient and (shortage != self._said or now - self._said_at >= SAY_AGAIN_SECONDS):
            self._said, self._said_at = shortage, now
            self._say(shortage)
