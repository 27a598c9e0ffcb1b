"""Asks the broker about the pending transactions of a job, as its recovery would, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from twopc.checkpoints.catalog import JobCheckpoints
from twopc.drill.job import PATIENCE_SECONDS, DrillJob
from twopc.drill.restore_checks import TRANSACTIONS, judge_transactions, prospects
from twopc.drill.verdict import Check, CheckVerdict
from twopc.errors import CheckpointCorrupted
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.positions.offset_status import unreadable
from twopc.kafka.positions.partition_position import partition_positions
from twopc.kafka.transactions import transaction_verdict
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.resume import gather
from twopc.protocol.facts import Committable, SplitPosition


def judge_pending(found: JobCheckpoints, job: DrillJob) -> Check:
    """Judge the transactions of the latest checkpoint: whatever is restored, those are what recovery settles."""
    latest = found.completed[-1]
    if latest.metadata is None:
        return Check.not_judged(TRANSACTIONS, f"the latest checkpoint can't be read: {latest.damage}")
    settled = latest.completed.lost
    due = [item for item in latest.metadata.committables if item.name not in settled]
    try:
        verdicts = {item.name: _verdict(job.cluster_of(item), item, item.name in latest.confirmed) for item in due}
    except CheckpointCorrupted as error:
        return Check(TRANSACTIONS, CheckVerdict.BROKEN, "a pending transaction can't be told", (str(error),))
    earlier = [entry.metadata for entry in found.completed[:-1] if entry.metadata is not None]
    positions = [position for each in earlier for position in each.positions] if _any_lost(verdicts) else []
    gone: dict[SplitPosition, str] = {}
    for key, cluster in job.inputs.items():
        topics = job.connectors.sources[key].topics
        own = [each for each in partition_positions(positions) if each.partition.topic in topics]
        with cluster.client() as client:
            gone |= call_with_retry(partial(unreadable, client, own), PATIENCE_SECONDS)
    return judge_transactions(prospects(latest.metadata, verdicts, settled, earlier, gone))


def _any_lost(verdicts: Mapping[str, transaction_verdict.Verdict]) -> bool:
    return any(isinstance(verdict, transaction_verdict.Lost) for verdict in verdicts.values())


def _verdict(cluster: Cluster, item: Committable, confirmed: bool) -> transaction_verdict.Verdict:
    prepared = PreparedTransaction.from_committable(item)
    with cluster.client() as client:
        evidence = call_with_retry(lambda: gather(client, prepared, confirmed), PATIENCE_SECONDS)
    return transaction_verdict.judge(prepared.recorded, evidence)
