"""In whose transactions the positions of the input go, and where they go beside them."""

from __future__ import annotations

import pytest

from twopc.driver.actions import Clusters
from twopc.driver.witness import offsets_group


def test_on_one_cluster_the_transactions_carry_the_positions() -> None:
    assert offsets_group(Clusters("g", "one", "one")) == ("g", None)


@pytest.mark.parametrize(
    ("clusters", "is_said"),
    [
        (Clusters("g", "one", "another"), True),
        (Clusters("g", "one", None), False),
        (Clusters("g", None, "one"), True),
        (Clusters(None, None, "one"), False),
    ],
    ids=["two clusters", "no Kafka sink", "no Kafka source", "no group"],
)
def test_elsewhere_they_are_committed_beside_them(clusters: Clusters, is_said: bool) -> None:
    group, why = offsets_group(clusters)
    assert group is None
    assert (why is not None) == is_said
