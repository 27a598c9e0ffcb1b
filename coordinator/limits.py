"""How much the coordinator takes from its peers at a time, so that no one of them can harm the others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The defaults are far above what a job needs.

    streams: open calls of all peers; each open stream holds a thread, made when it is needed. More are refused.
    streams_of_connection: the same of one connection; more wait.
    events_in_flight: what one subtask has said and the coordinator has not yet looked at; one that floods is cut off.
    attach_seconds: how long an open stream may be silent before it says whose it is.
    answer_seconds: how long a call may wait for the coordinator's one thread.
    """

    streams: int = 1_024
    streams_of_connection: int = 256
    events_in_flight: int = 128
    attach_seconds: float = 10.0
    answer_seconds: float = 30.0
