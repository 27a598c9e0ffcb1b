"""Keeps two runs in one checkout from writing the results of one tier: the later one is refused by name."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


class TierTaken(Exception):
    """Another run plays the tier in this checkout; says which process, and what to do."""


@contextmanager
def claimed(tiers: Iterable[str], folder: Path) -> Iterator[None]:
    """Be the only run that writes what these tiers leave in the folder; raise TierTaken if there is one already."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        for tier in dict.fromkeys(tiers):
            # The kernel lets go of the lock when the process ends, however it ends.
            file = held.enter_context((folder / f"{tier}.lock").open("a+"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                other = f"process {file.read().strip()}"
                raise TierTaken(
                    f"{other} plays the tier {tier} in this checkout: wait for its end, or end it"
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        yield
