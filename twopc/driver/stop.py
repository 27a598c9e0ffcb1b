"""A stop of a running attempt: asks the coordinator for a last checkpoint, and waits for it while it may come."""

from __future__ import annotations

import logging
import threading
import time

from twopc.context import JobContext
from twopc.driver.events import EventWatch
from twopc.driver.host import StoppedEarly
from twopc.driver.stopping import NOTHING_LOST, hopeless
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.rpc.job_client import JobClient

log = logging.getLogger(__name__)


class Stop:
    """Asks on a thread of its own: a coordinator that does not answer keeps nobody from ending."""

    def __init__(self, client: JobClient, context: JobContext) -> None:
        log.debug("asking for a last checkpoint")
        self._client = client
        self._context = context
        self._asked_at = time.monotonic()
        self._accepted = threading.Event()
        threading.Thread(target=self._ask, name="twopc-stop", daemon=True).start()

    def check(self, watch: EventWatch) -> None:
        """Raise StoppedEarly where nothing was read, Unavailable where no last checkpoint is to be hoped for."""
        seen, accepted = watch.liveness, self._accepted.is_set()
        if not seen.attached:
            raise StoppedEarly
        why = hopeless(seen, self._context.parallelism, self._asked_at, time.monotonic(), accepted=accepted)
        if why is not None:
            raise Unavailable(f"stopped without a last checkpoint: {why}. {NOTHING_LOST}")

    def _ask(self) -> None:
        try:
            self._client.stop(self._context.job, self._context.attempt)
            self._accepted.set()
        except TwoPhaseCommitError as error:
            log.warning("the coordinator could not be asked for a last checkpoint: %s", error)
