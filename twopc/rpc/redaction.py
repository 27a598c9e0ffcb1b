"""Redacts text that leaves a process: bounded, on one line, no paths of the machine, no values of secrets. Pure.

What a person needs of an error is what happened to which record, file of a checkpoint, or setting. Those names are
relative, or names of settings, and stay.
"""

from __future__ import annotations

import re

TEXT_MAX = 2_000
"""Characters of one text on the wire; what is longer is cut."""

_PLACE = re.compile(r"(?<![\w./:@-])/(?:[^\s/:;,'\"()\[\]]+/)+([^\s/:;,'\"()\[\]]*)")
_SECRET = re.compile(
    r"""(?ix) (?P<name> (?:password|passphrase|secret|token|credential|jaas\.config|private[._-]?key) [\w.-]{0,40})
    (?P<equals> \s{0,9} = \s{0,9} | ['"] \s{0,9} [=:] \s{0,9} )
    (?: (?P<quote> ['"]) .{0,500}? (?P=quote) | [^\s'",;}\])]+ )"""
)


def redact(text: str) -> str:
    """Return the text as other processes and people may read it."""
    text = _SECRET.sub(r"\g<name>\g<equals>***", text[: 4 * TEXT_MAX])
    text = _PLACE.sub(lambda found: f".../{found[1]}" if found[1] else "...", text)
    text = " ".join(text.split())
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 4]} ..."
