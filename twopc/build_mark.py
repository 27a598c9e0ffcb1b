"""The mark of a compiled part: a digest of the C sources that it was built from.

Invariant: only the standard library is imported here, nothing of twopc. `setup.py` runs this file by its path, where
neither this package nor what it needs is installed yet.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

MARK = "built from C sources "


def mark_of(folder: Path) -> str:
    """Return what a build from the C sources in this folder has in it; empty if there are none."""
    sources = sorted(folder.glob("*.[ch]"))
    if not sources:
        return ""
    digest = hashlib.sha256()
    for source in sources:
        data = source.read_bytes()
        digest.update(f"{source.name} {len(data)}\n".encode() + data)
    return MARK + digest.hexdigest()
