"""Topics that a job had hardly better read or write: said, never refused, because a person may mean it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

INTERNAL = "__"


def doubts(reads: Collection[str], writes: Collection[str], is_one_cluster: Callable[[], bool]) -> Iterator[str]:
    """Yield a warning for each doubtful topic; whether both ends are on one cluster is asked only where it matters."""
    both = sorted(set(reads) & set(writes))
    if both and is_one_cluster():
        for topic in both:
            yield (
                f"topic {topic!r} is input and output of this job: it reads what it writes, without end unless its "
                "functions drop that. Give the output a topic of its own"
            )
    for topic in sorted({*reads, *writes}):
        if topic.startswith(INTERNAL):
            does = "written to" if topic in writes else "read"
            yield (
                f"topic {topic!r} is {does}, though names that begin with {INTERNAL!r} are those of topics that Kafka "
                "and its tools keep for themselves, in formats of their own: is it the right one?"
            )
