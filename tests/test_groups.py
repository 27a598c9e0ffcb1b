"""Groups of tests are sent to one process by what stands behind their ids."""

from __future__ import annotations

import pytest

from tests.groups import name_groups


@pytest.mark.xdist_group("one process")
def test_the_group_of_a_test_stands_behind_its_id_once(request: pytest.FixtureRequest) -> None:
    item = request.node
    before, own = item.nodeid.removesuffix("@one process"), item._id
    try:
        name_groups([item])
        name_groups([item])
        assert item.nodeid == f"{before}@one process"
    finally:
        item._id = own
