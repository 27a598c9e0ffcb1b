"""Sinks of a job that write into one transaction a subtask and checkpoint.

Kafka sinks of one cluster and prefix form one group; every other sink is a group of its own. How it is used:

- the driver forms the groups once an attempt (`transaction_groups`), opens one committer for each, and settles with it
  the committables that are stored under the group's id;
- a subtask opens one writer for each group (`GroupWriter.open`), hands it the batches of each of its sinks
  (`write[sink id](batch)`), and calls `begin`, `pre_commit`, `commit`, `release`, `abort` and `close` once a group, not
  once a sink. A group has at most one committable a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.record import Batch
from twopc.sink import Committer, GlobalCommitter, Sink, SinkWriter


@dataclass(frozen=True, slots=True)
class TransactionGroup:
    """`id` is what its committables are stored under, `sinks` are operator ids, in the order of the job.

    `cluster` is the id of the cluster to whose followers its commits bring the positions; None for no such.
    `is_global`: a global committer, which is that of the first sink, commits what the subtasks have pre-committed.
    """

    id: str
    sinks: tuple[str, ...]
    cluster: str | None = None
    is_global: bool = False

    def open_committer(self, sinks: Mapping[str, Sink], context: JobContext) -> Committer:
        """On the driver: open the one committer of the group; `sinks` are the job's."""
        first, *others = self.sinks
        committer = sinks[first].open_committer(context)
        for each in others:
            committer.join(sinks[each])
        return committer

    def open_global_committer(self, sinks: Mapping[str, Sink], context: JobContext) -> GlobalCommitter | None:
        """On the driver: open the global committer of the group, if it has one."""
        return sinks[self.sinks[0]].open_global_committer(context)


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """An open group on a subtask: its one writer, and through what each of its sinks writes, by operator id."""

    id: str
    writer: SinkWriter
    write: Mapping[str, Callable[[Batch], int]]
    is_global: bool = False

    @classmethod
    def open(cls, group: TransactionGroup, sinks: Mapping[str, Sink], context: SubtaskContext) -> GroupWriter:
        first, *others = group.sinks
        writer = sinks[first].open_writer(context)
        write = {first: writer.write, **{each: writer.join(sinks[each]) for each in others}}
        return cls(group.id, writer, write, group.is_global)


def transaction_groups(sinks: Mapping[str, Sink], context: JobContext) -> tuple[TransactionGroup, ...]:
    """On the driver: form the groups of a job's sinks, in the order of the first sink of each.

    Raises ConfigurationError where sinks that have to share a transaction would write with different settings.
    """
    shared = {sink_id: sink.shared_transaction(context) for sink_id, sink in sinks.items()}
    members: dict[str, list[str]] = {}
    for sink_id, transaction in shared.items():
        first, *_ = same = members.setdefault(sink_id if transaction is None else transaction.id, [sink_id])
        if first != sink_id:
            same.append(sink_id)
        if shared[first] != transaction:
            raise ConfigurationError(
                f"job {context.job!r}: sinks {first!r} and {sink_id!r} write into one transaction, with one producer, "
                "but their properties or bootstrap_servers differ: give both the same, or one of them a "
                "transactional_id_prefix of its own"
            )
    clusters = {each.id: each.cluster for each in shared.values() if each is not None}
    return tuple(TransactionGroup(each, tuple(same), clusters.get(each)) for each, same in members.items())
