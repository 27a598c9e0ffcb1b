"""The checks of a restore drill that need no broker: the answers of the brokers are given. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from twopc.drill.verdict import Check, CheckVerdict
from twopc.kafka.positions.offset_status import OffsetStatus, Readability
from twopc.kafka.positions.partition_position import PartitionPosition, partition_positions
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions import transaction_verdict
from twopc.protocol.facts import CheckpointMetadata, Committable, SplitPosition
from twopc.protocol.healing import Fate, Healed, Refused, plan
from twopc.protocol.ids import CheckpointId, SubtaskIndex

POSITIONS, TRANSACTIONS = "positions", "transactions"


def judge_positions(held: Sequence[PartitionPosition], statuses: Sequence[OffsetStatus]) -> Check:
    """Whether every position can still be read from, by what the brokers say of each."""
    findings = [
        finding for pair in zip(held, statuses, strict=True) if (finding := _position_finding(*pair)) is not None
    ]
    return Check.of(
        POSITIONS,
        findings,
        held=f"all {len(held)} positions are within retention",
        broken=f"{len(findings)} of {len(held)} positions can't be read from any more",
    )


def _position_finding(held: PartitionPosition, status: OffsetStatus) -> str | None:
    name, position, topic = held.partition, held.position, held.partition.topic
    match status.readability:
        case Readability.READABLE:
            return None
        case Readability.GONE:
            return f"deleted: {name}@{position} is of an input topic or partition that is not there any more"
        case Readability.RECREATED:
            return f"recreated: input topic {topic} was deleted and created again, so {name}@{position} means nothing"
        case Readability.DELETED:
            assert status.first is not None
            gone = f"{status.first - position} are gone"
            return f"out of retention: {name}@{position}, but the first record is at {status.first}: {gone}"
        case Readability.BEYOND:
            lost = "records were lost on the broker"
            return f"beyond the end: {name}@{position}, but the partition ends at {status.end}: {lost}"
        case Readability.CUT:
            return f"lost: the brokers have lost what was read of {name} before {position}, and others have its offsets"
        case _:
            assert_never(status.readability)


class Prospect(StrEnum):
    """The prospect of one pending transaction: what a restore would find out about it, or do about it."""

    WOULD_COMMIT = "would commit"
    ALREADY_COMMITTED = "already committed"
    WOULD_REWRITE = "lost, would be written again"
    LOST = "lost"
    SETTLED = "lost, and settled before"
    UNDECIDED = "not decided yet"


@dataclass(frozen=True, slots=True)
class TransactionProspect:
    """One pending transaction, what would become of it, and why."""

    name: str
    checkpoint_id: CheckpointId
    subtask: SubtaskIndex
    prospect: Prospect
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.prospect.value}: {self.why}"


Say = Callable[[Prospect, str], TransactionProspect]


def prospects(
    latest: CheckpointMetadata,
    verdicts: Mapping[str, transaction_verdict.Verdict],
    settled: frozenset[str],
    earlier: Sequence[CheckpointMetadata],
    gone: Mapping[SplitPosition, str],
) -> tuple[TransactionProspect, ...]:
    """Return what recovery would do about each committable of the latest checkpoint, given a verdict for each.

    `settled` names those whose loss was decided about before. `earlier` are the other checkpoints that are kept;
    `gone` are those of their positions that can't be read from any more, and why.
    """
    due = [item for item in latest.committables if item.name not in settled]
    fates = dict.fromkeys(settled, Fate.UNKNOWN) | _fates(due, verdicts)
    decided = plan(latest, fates, earlier, gone) if any(_is_lost(verdicts[item.name]) for item in due) else None
    found = [
        TransactionProspect(
            item.name, item.checkpoint_id, item.subtask, Prospect.SETTLED, "see `twopc checkpoints show`"
        )
        for item in latest.committables
        if item.name in settled
    ]
    found += [_prospect(item, verdicts[item.name], fates[item.name], decided) for item in due]
    return tuple(found)


def judge_transactions(found: Iterable[TransactionProspect]) -> Check:
    """Whether every pending transaction would be committed, is, or would be written again exactly."""
    every = list(found)
    counts = ", ".join(
        f"{count} {prospect.value}"
        for prospect in Prospect
        if (count := sum(each.prospect is prospect for each in every))
    )
    if any(each.prospect is Prospect.UNDECIDED for each in every):
        return Check.not_judged(TRANSACTIONS, f"the broker has not decided yet: {counts}")
    lost = [str(each) for each in every if each.prospect is Prospect.LOST]
    if lost:
        return Check(TRANSACTIONS, CheckVerdict.BROKEN, counts, tuple(lost))
    noted = [str(each) for each in every if each.prospect is Prospect.WOULD_REWRITE]
    return Check(TRANSACTIONS, CheckVerdict.HELD, counts or "none is pending", tuple(noted))


def _is_lost(verdict: transaction_verdict.Verdict) -> bool:
    return isinstance(verdict, transaction_verdict.Lost)


def _fates(due: Sequence[Committable], verdicts: Mapping[str, transaction_verdict.Verdict]) -> dict[str, Fate]:
    """As recovery would find them, in the order of their checkpoints: behind a lost one nothing is committed.

    Each transaction group is settled by itself: what another one has open behind a loss is committed all the same.
    """
    fates: dict[str, Fate] = {}
    losers: set[tuple[str, SubtaskIndex]] = set()
    for item in due:
        verdict = verdicts[item.name]
        match verdict:
            case transaction_verdict.Commit() | transaction_verdict.Wait():
                fates[item.name] = Fate.HELD if (item.group, item.subtask) in losers else Fate.COMMITTED
            case transaction_verdict.AlreadyCommitted():
                fates[item.name] = Fate.COMMITTED
            case transaction_verdict.Lost():
                losers.add((item.group, item.subtask))
                fates[item.name] = Fate.ABORTED if verdict.certain else Fate.UNKNOWN
            case _:
                assert_never(verdict)
    return fates


def _prospect(
    item: Committable, verdict: transaction_verdict.Verdict, fate: Fate, decided: Healed | Refused | None
) -> TransactionProspect:
    def say(prospect: Prospect, why: str) -> TransactionProspect:
        return TransactionProspect(item.name, item.checkpoint_id, item.subtask, prospect, why)

    match verdict:
        case transaction_verdict.Commit():
            if fate is Fate.HELD:
                return _of_loss(say, "it is open, behind one of its subtask that is lost", item, decided)
            return say(Prospect.WOULD_COMMIT, "it is open and whole")
        case transaction_verdict.AlreadyCommitted(why):
            return say(Prospect.ALREADY_COMMITTED, why)
        case transaction_verdict.Lost(why):
            return _of_loss(say, why, item, decided)
        case transaction_verdict.Wait():
            return say(Prospect.UNDECIDED, "the broker is about to change its state: drill again")
        case _:
            assert_never(verdict)


def _of_loss(say: Say, why: str, item: Committable, decided: Healed | Refused | None) -> TransactionProspect:
    if isinstance(decided, Healed):
        return say(
            Prospect.WOULD_REWRITE, f"{why}; subtask {item.subtask} from checkpoint {decided.bases[item.subtask]}"
        )
    return say(Prospect.LOST, why if decided is None else f"{why}; {decided.why}")


def complete_up_to(
    kept: Sequence[tuple[CheckpointMetadata | None, bool]], *, nothing_open: bool
) -> CheckpointMetadata | None:
    """Return the newest checkpoint all of whose output a reader must see by now; None if there is none.

    `kept` are the checkpoints, oldest first, each with whether all its transactions are committed. An open transaction
    hides what others have committed after it began, as Kafka has it: but it began after the checkpoint before the
    newest committed one, so what belongs to that is in front of it.
    """
    committed = [metadata for metadata, is_committed in kept if is_committed and metadata is not None]
    if not committed:
        return None
    if nothing_open:
        return committed[-1]
    return committed[-2] if len(committed) > 1 else None


def repeated_input(checkpoints: Sequence[CheckpointMetadata]) -> Iterator[str]:
    """Say whose output was written a second time, where a position of these checkpoints, oldest first, went back.

    No more than what is sure: where the attempt that went back began to read, a checkpoint that is gone may have known.
    """
    ends = {held.partition: held for checkpoint in checkpoints for held in partition_positions(checkpoint.positions)}
    furthest: dict[TopicPartition, tuple[PartitionPosition, CheckpointMetadata]] = {}
    for checkpoint in checkpoints:
        for held in partition_positions(checkpoint.positions):
            far, by = furthest.get(held.partition, (held, checkpoint))
            if far.topic_id == held.topic_id and held.position < far.position:
                again = min(far.position, ends[held.partition].position)
                if again > held.position:
                    yield (
                        f"repeated: checkpoint {by.checkpoint_id} of attempt {by.attempt} had {held.partition} up to "
                        f"offset {far.position - 1}, and attempt {checkpoint.attempt} went back to {held.position} or "
                        f"before: readers see the output of offsets {held.position} to {again - 1} twice"
                    )
                far, by = held, checkpoint
            furthest[held.partition] = (held, checkpoint) if held.position >= far.position else (far, by)
