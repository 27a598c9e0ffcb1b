"""A driver's traces, sent while its run lasts, where the settings ask for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from twopc import events
from twopc.config import RunSettings

OnEvent = Callable[[events.Event], None]


def traces_of(settings: RunSettings) -> AbstractContextManager[OnEvent | None]:
    """Give what has to be told of every event of the job; nothing where no traces are wanted.

    Raises ConfigurationError where they can't be sent from here.
    """
    if not settings.traces:
        return nullcontext(None)
    # No run without traces pays for them.
    from twopc.tracing.sender import traces_sent

    return traces_sent()
