"""Writes the generated parts of the docs: `python -m scripts.protocol_doc`. A test says when they are stale."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from scripts.protocol_tables import TABLES

_DOCS = Path(__file__).resolve().parents[1] / "docs"
DOCUMENTS = (_DOCS / "protocol.md", _DOCS / "settings.md")
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def refreshed(text: str) -> str:
    """Return the document with every generated part as the code has it now."""
    return _PART.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", text)


def parts(text: str) -> list[str]:
    """The names of the generated parts, in order."""
    return [found[2] for found in _PART.finditer(text)]


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(refreshed(document.read_text()))
        sys.stdout.write(f"{document.name}: {', '.join(parts(document.read_text()))}\n")
