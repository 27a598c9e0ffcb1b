"""The numbers and names of the protocol, each with a type of its own."""

from __future__ import annotations

import re
from typing import NewType

from twopc.errors import ConfigurationError

CheckpointId = NewType("CheckpointId", int)
"""Issued by the coordinator, from 1, growing for ever, over restarts too."""

NO_CHECKPOINT = CheckpointId(0)
"""Smaller than every checkpoint."""

AttemptId = NewType("AttemptId", int)
"""One run of a job, from 1; a greater attempt fences a smaller one."""

NO_ATTEMPT = AttemptId(0)
"""Smaller than every attempt."""

SubtaskIndex = NewType("SubtaskIndex", int)
"""Which parallel instance of the job's chain, from 0 to parallelism - 1."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checked_name(kind: str, name: str) -> str:
    """Return `name` if it may become part of a path and of a transactional id; raise ConfigurationError otherwise."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or ".." in name:
        raise ConfigurationError(
            f"{kind} {name!r} can't be used: give 1 to 128 letters, digits, '.', '_' or '-', "
            "the first a letter or digit, without '..'"
        )
    return name
