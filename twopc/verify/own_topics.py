"""Topics of the job's own (`key_by`): judged as output and read as input, where all that was written there still is.

A job deletes there what no kept checkpoint reads again. With the beginning of the topic the order is gone in which
records of several inputs met, and what depends on it can't be worked out: it is left out by name.
"""

from __future__ import annotations

from collections.abc import Collection

from twopc.errors import NotJudged
from twopc.kafka.input.topic_reader import ranges_of
from twopc.kafka.repartition import RepartitionSource
from twopc.verify.plan import VerifyPlan


def with_whole_topics(plan: VerifyPlan) -> VerifyPlan:
    """Ask where topics of the job's own begin; return the plan without what can't be judged for that.

    Raises NotJudged where nothing is left.
    """
    own = [key for key, source in plan.sources.items() if isinstance(source, RepartitionSource)]
    trimmed = {key: gone for key in own if (gone := _trimmed(plan, key))}
    if not trimmed:
        return plan
    unknown = frozenset(trimmed)
    while more := {key for key in own if key not in unknown and _writes(plan, unknown, plan.sources[key].topics)}:
        # What one topic of the job's own has is made of another's, and so on.
        unknown |= more
    begun = {topic for topic, _ in trimmed.values()}
    made = {topic for topic in plan.outputs if _writes(plan, unknown, (topic,))} - begun
    reasons = [f"topic {topic!r} of the job's own is not judged: {why}" for topic, why in trimmed.values()]
    reasons += [
        f"topic {topic!r} is not judged: what it has is made of that, in the order that was there: drill it from a "
        "kept checkpoint (twopc drill)"
        for topic in sorted(made)
    ]
    left = plan.without(unknown, begun | made, reasons)
    if not left.outputs:
        raise NotJudged(f"job {plan.job!r} can't be verified: {'; '.join(left.left_out)}")
    return left


def _trimmed(plan: VerifyPlan, source: str) -> tuple[str, str] | None:
    """Return the topic that a source reads, and up to where its records are deleted; None if none are."""
    with plan.inputs[source].client() as client:
        begins = ranges_of(client, client.topics(plan.sources[source].topics))
    deleted = [f"{partition} up to offset {first}" for partition, (first, _) in sorted(begins.items()) if first > 0]
    if not deleted:
        return None
    [topic] = plan.sources[source].topics
    return topic, f"the job has deleted what it had read there ({', '.join(deleted)})"


def _writes(plan: VerifyPlan, sources: Collection[str], topics: Collection[str]) -> bool:
    """Whether records of these sources come to one of the topics; a sink that chooses may write to any."""
    sinks = plan.paths.behind(sources)
    nodes = [node.operation for node in plan.paths.sinks.values() if node.operator in sinks]
    return any(not sink.outputs or set(sink.outputs) & set(topics) for sink in nodes)
