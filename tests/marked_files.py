"""Files of tests name the markers by which tiers choose them: a tier imports only files that name its own."""

from __future__ import annotations

from functools import cache

import pytest

from scripts.tiers.tier import TIERS, names_marker

_MARKERS = [tier.in_files for tier in TIERS if tier.in_files is not None]
_is_named = cache(names_marker)


def require_names(item: pytest.Item) -> None:
    """Refuse a test with the marker of a tier that its file does not name."""
    for marker in _MARKERS:
        if item.get_closest_marker(marker) and not _is_named(item.path, marker):
            raise pytest.UsageError(f"{item.path} has tests of the tier {marker!r} and does not name `mark.{marker}`")
