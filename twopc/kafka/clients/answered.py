"""The brokers that have answered this process: of those, no address is wrong, and they may come back."""

from __future__ import annotations

_answered: set[str] = set()


def note_answer(servers: str) -> None:
    """Note that a request has got through by these bootstrap servers."""
    _answered.add(servers)


def has_answered(servers: str) -> bool:
    """Whether a request ever got through by these bootstrap servers."""
    return servers in _answered
