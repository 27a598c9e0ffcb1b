"""In whose transactions the positions of the input go, and where they go beside them."""

from __future__ import annotations

import pytest

from twopc.driver.actions import Clusters


def test_on_one_cluster_the_transactions_carry_the_positions() -> None:
    assert Clusters("g", "one", "one").witness() == ("g", None)


@pytest.mark.parametrize(
    ("clusters", "is_said"),
    [
        (Clusters("g", "one", "another"), True),
        (Clusters("g", "one", None), False),
        (Clusters("g", None, "one"), True),
        (Clusters(None, None, "one"), False),
    ],
    ids=["two clusters", "no Kafka sink", "no Kafka source", "no follower"],
)
def test_elsewhere_they_are_committed_beside_them(clusters: Clusters, is_said: bool) -> None:
    follower, why = clusters.witness()
    assert follower is None
    assert (why is not None) == is_said
