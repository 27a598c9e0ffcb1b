"""Headers as they are written: pairs of a name, which is text, and a value."""

from __future__ import annotations

from typing import Any


def checked_headers(headers: Any) -> list[tuple[str, Any]]:
    """Return the headers of a record; raise TypeError or ValueError for what would be written as something else.

    confluent-kafka writes a name that is no text as its repr, cuts one short at a NUL, and crashes at text that UTF-8
    can't hold.
    """
    checked = list(headers)
    for header in checked:
        if not isinstance(header, tuple) or len(header) != 2:
            raise TypeError(f"headers must be pairs of a name and a value, and {header!r} is none")
        name = header[0]
        if not isinstance(name, str):
            raise TypeError(f"the name of a header must be text, not {name!r}")
        if "\0" in name:
            raise ValueError(f"the name of a header, {name!r}, has a NUL in it")
        for text in header:
            if isinstance(text, str):
                text.encode()
    return checked
