"""The names under which a store is tried before it is used, and which of them nobody will delete any more.

Who tries a store deletes its probe, unless it is killed meanwhile. Nobody may delete a probe that is in use: its owner
would take the server for one that overwrites. So a name says when it was made, and one is left alone for a day, which
is longer than any try takes, and more than the clocks of two machines differ by.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

_DAY_SECONDS = 86_400
_NAME = re.compile(r"\.twopc-probe-(?:([0-9]+)-)?[0-9a-f]+", re.ASCII)


def probe_name(creator: str) -> str:
    """Return a name for a probe that is made now; `creator` is a token that nobody else has got."""
    # One that begins with a dot is in no list of what is stored.
    return f".twopc-probe-{int(time.time())}-{creator}"


def abandoned(names: Iterable[str]) -> list[str]:
    """Return those of these names that are probes whose owners have ended, ascending.

    One without a time was made by a version that wrote none.
    """
    made = {name: int(found[1] or 0) for name in names if (found := _NAME.fullmatch(name)) is not None}
    return sorted(name for name, seconds in made.items() if seconds < time.time() - _DAY_SECONDS)
