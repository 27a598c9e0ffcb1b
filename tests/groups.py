"""Groups of tests that one process plays, for they share what is set up once: named in the ids that xdist goes by.

pytest-xdist 3.8 names them in an attribute that pytest 9.2 doesn't read: `--dist loadgroup` alone sends them anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.nodeid import NodeId


def name_groups(items: Iterable[pytest.Item]) -> None:
    """Put the group of each test behind its id, where it is not there."""
    for item in items:
        marker = item.get_closest_marker("xdist_group")
        if marker is None or item.nodeid.endswith(f"@{marker.args[0]}"):
            continue
        item._id = NodeId.parse(f"{item.nodeid}@{marker.args[0]}")
