"""Input of a restored checkpoint that the job no longer reads: refused, unless a person gives it up by name. Pure.

A checkpoint has positions and state by key of each split that it read. Those of a split that nobody reads any
more are in no later checkpoint: if the job read that input again later, it would begin anew, and nothing would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from twopc.errors import ConfigurationError
from twopc.listing import listed
from twopc.protocol.facts import CheckpointMetadata


def refuse_left_behind(
    restored: CheckpointMetadata | None,
    is_read: Callable[[str], bool],
    input_of: Callable[[str], str],
    inputs: Iterable[str],
    dropped: Collection[str],
) -> None:
    """Raise ConfigurationError if the checkpoint stands in splits of input that is neither read nor `dropped`.

    `inputs` are those that the job reads; one that is dropped too is refused.
    """
    read = sorted(set(inputs))
    if both := sorted(set(dropped) & set(read)):
        raise ConfigurationError(
            f"drop_inputs names input {both[0]!r}, which the job reads: take it out of one of them"
        )
    if restored is None:
        return
    held = {position.split for position in restored.positions}
    lost = sorted({input_of(split) for split in held if not is_read(split)} - set(dropped))
    if lost:
        raise ConfigurationError(
            f"checkpoint {restored.checkpoint_id}, to be restored, has positions and state of input {lost[0]!r}, "
            f"and the job does not read all of that (it reads: {listed(read, 'nothing')}), so they would be left "
            "behind: let the job read it as it did, or give up for good what the checkpoint has of it with "
            f"--drop-inputs {','.join(lost)}"
        )
