"""State of a restored checkpoint that the job no longer declares: refused, unless a person gives it up by name.

A state that was renamed would begin empty, and nothing would say so.
"""

from __future__ import annotations

from collections.abc import Collection

from twopc.errors import ConfigurationError
from twopc.kafka.topic_partition import TopicPartition
from twopc.state.backend import Family, StateBackend
from twopc.state.layout import state_prefix
from twopc.state.serdes import forget_serdes, read_serdes


def drop_undeclared(
    backend: StateBackend,
    declared: Collection[str],
    dropped: Collection[str],
    partitions: Collection[TopicPartition],
) -> None:
    """Delete the states named in `dropped`; raise ConfigurationError if others are there that are not `declared`.

    `partitions` are those that the subtask reads. A state that is declared is never dropped: that is refused too.
    """
    if both := sorted(set(dropped) & set(declared)):
        raise ConfigurationError(f"drop_states names {both[0]!r}, which the job declares: take it out of one of them")
    if lost := sorted(set(read_serdes(backend)) - set(declared) - set(dropped)):
        there = ", ".join(map(repr, declared)) or "none"
        raise ConfigurationError(
            f"the restored checkpoint has state {lost[0]!r}, and the job declares no state of that name (it declares: "
            f"{there}), so what it holds would be left behind: name the state as it was, or give it up for good with "
            f"--drop-states {','.join(lost)}"
        )
    for name in dropped:
        for partition in partitions:
            backend.delete_prefix(Family.KEYED, state_prefix(partition, name))
    forget_serdes(backend, dropped)
