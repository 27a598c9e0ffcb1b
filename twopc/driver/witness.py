"""Whether the sink's transactions carry the job's positions, as the witness of their outcome. Pure."""

from __future__ import annotations

from twopc.driver.actions import Clusters


def offsets_group(clusters: Clusters) -> tuple[str | None, str | None]:
    """Return the consumer group to which transactions commit the positions, None where that happens beside them; why.

    A transaction ends on one cluster: where the source's group is kept by another, it can't carry the positions.
    """
    group, of_group, of_sink = clusters.group, clusters.of_group, clusters.of_sink
    if group is None or of_sink is None:
        return None, None
    if of_group == of_sink:
        return group, None
    return None, (
        f"the input is on cluster {of_group}, the output on {of_sink}: the group {group} is told of positions after "
        "each commit, and no transaction has them as a witness"
    )
