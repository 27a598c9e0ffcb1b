"""Completed checkpoints as plain values, for JSON, and as tables, for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.table import Table

from twopc.checkpoints.catalog import CheckpointEntry
from twopc.checkpoints.times import times_of
from twopc.cli.state_report import sizes_table
from twopc.cli.tables import moment, size_text, table
from twopc.kafka.positions.partition_position import gaps_of
from twopc.protocol.codec import to_json
from twopc.protocol.facts import (
    CheckpointMetadata,
    StateHandle,
    SubtaskSnapshot,
    position_text,
    shown_position,
)
from twopc.protocol.layout import metadata_path

if TYPE_CHECKING:
    from twopc.kafka.positions.offset_status import OffsetStatus

_FROM_METADATA = (
    *("kind", "triggered_ms", "acknowledged_ms", "duration_ms", "parallelism"),
    *("size_bytes", "committables", "outstanding", "globally_outstanding"),
)


def summarise(job: str, entry: CheckpointEntry) -> dict[str, Any]:
    """Return one checkpoint in a line; of a damaged one no more is known than its id, and what is wrong."""
    known: dict[str, Any] = {
        "job": job,
        "checkpoint_id": entry.checkpoint_id,
        "attempt": entry.attempt,
        "label": entry.label,
        "place": entry.place,
        "damage": entry.damage or None,
    }
    metadata = entry.metadata
    if metadata is None:
        return known | dict.fromkeys(_FROM_METADATA)
    outstanding = {each.name: each for each in metadata.committables if _state(each.name, entry) == "outstanding"}
    return known | {
        "kind": metadata.kind,
        "triggered_ms": metadata.triggered_ms,
        "acknowledged_ms": metadata.acknowledged_ms,
        "duration_ms": metadata.acknowledged_ms - metadata.triggered_ms,
        "parallelism": metadata.parallelism,
        "size_bytes": sum(snapshot.state.size_bytes for snapshot in metadata.snapshots),
        "committables": len({committable.name for committable in metadata.committables}),
        "outstanding": len(outstanding),
        "globally_outstanding": sum(each.is_global for each in outstanding.values()),
    }


def describe(job: str, entry: CheckpointEntry, metadata: CheckpointMetadata) -> dict[str, Any]:
    """Return one checkpoint with all that it holds of each subtask."""
    snapshots = [_snapshot(snapshot, entry) for snapshot in metadata.snapshots]
    return summarise(job, entry) | {
        "times": times_of(metadata, entry.completed).to_json(),
        "snapshots": snapshots,
        "losses": [to_json(loss) for loss in entry.losses],
    }


def _lost(entry: CheckpointEntry) -> frozenset[str]:
    return frozenset(name for loss in entry.losses for name in loss.names)


def _state(name: str, entry: CheckpointEntry) -> str:
    if name in _lost(entry):
        return "lost"
    return "confirmed" if name in entry.confirmed else "outstanding"


def _snapshot(snapshot: SubtaskSnapshot, entry: CheckpointEntry) -> dict[str, Any]:
    return {
        "subtask": snapshot.subtask,
        "finished": snapshot.finished,
        "positions": [
            {
                "split": held.split,
                "partition": held.partition,
                "position": shown_position(held.position),
                "gaps": gaps_of(held.position),
            }
            for held in snapshot.positions
        ],
        "committables": [
            {
                "name": committable.name,
                "checkpoint_id": committable.checkpoint_id,
                "state": _state(committable.name, entry),
                "payload": dict(committable.payload),
            }
            for committable in snapshot.committables
        ],
        "state": _where(snapshot.state, entry),
    }


def _where(state: StateHandle, entry: CheckpointEntry) -> dict[str, Any]:
    """Not the estimate of the keys: it is too high by however often they were written."""
    path = metadata_path(entry.checkpoint_id) if state.manifest is None else state.path
    return {"path": path, "size_bytes": state.size_bytes}


def summary_table(summaries: Iterable[dict[str, Any]]) -> Table:
    """Return checkpoints, one a row."""
    heads = ("job", "id", "kind", "label", "acknowledged at", "duration", "size", "subtasks", "transactions")
    return table(
        None, heads, [_damaged_row(summary) if summary["damage"] else _summary_row(summary) for summary in summaries]
    )


def _damaged_row(summary: dict[str, Any]) -> tuple[str, ...]:
    return (summary["job"], str(summary["checkpoint_id"]), "DAMAGED")


def _summary_row(summary: dict[str, Any]) -> tuple[str, ...]:
    return (
        summary["job"],
        str(summary["checkpoint_id"]),
        summary["kind"],
        summary["label"],
        moment(summary["acknowledged_ms"]),
        f"{summary['duration_ms']:,} ms",
        size_text(summary["size_bytes"]),
        str(summary["parallelism"]),
        _transactions(summary["committables"], summary["outstanding"], summary["globally_outstanding"]),
    )


def _transactions(count: int, outstanding: int, globally: int) -> str:
    if not count:
        return "none"
    if not outstanding:
        return "committed"
    return f"{outstanding} of {count} outstanding" + (f", {globally} of them globally" if globally else "")


def loss_table(losses: Iterable[dict[str, Any]]) -> Iterable[Table]:
    """The decisions about lost output; nothing where none is lost."""
    rows = [
        (
            ", ".join(loss["names"]),
            "\n".join(f"subtask {subtask} from checkpoint {base}" for subtask, base in loss["bases"]) or "accepted",
            loss["message"],
        )
        for loss in losses
    ]
    if rows:
        yield table("Losses", ("transactions", "written again by", "why"), rows)


def stood(offset_statuses: Iterable[OffsetStatus]) -> list[dict[str, Any]]:
    """The status of positions at the brokers, as plain values."""
    return [
        {
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "verdict": each.readability,
            "first": each.first,
            "end": each.end,
            "behind": each.behind,
        }
        for each in sorted(offset_statuses, key=lambda status: status.partition)
    ]


def state_table(states: Iterable[dict[str, Any]] | None) -> Iterable[Table]:
    """The states; nothing where there are none, or nobody counted."""
    if states:
        yield sizes_table(states, "State")


def standing_table(offset_statuses: Iterable[dict[str, Any]]) -> Iterable[Table]:
    """The status of positions at the brokers; nothing where nobody was asked."""
    rows = [
        (
            status["topic"],
            str(status["partition"]),
            status["verdict"],
            *("-" if status[name] is None else f"{status[name]:,}" for name in ("first", "end", "behind")),
        )
        for status in offset_statuses
    ]
    if rows:
        yield table("Input now", ("topic", "partition", "position is", "first offset", "end", "behind"), rows)


def _number_text(position: Any) -> str:
    return f"{position:,}" if isinstance(position, int) else position_text(position)


def detail_tables(snapshots: Iterable[dict[str, Any]]) -> Iterable[Table]:
    """Yield what the snapshots of one checkpoint hold: positions, transactions, files of state."""
    rows = list(snapshots)
    yield table(
        "Positions: the next to read",
        ("subtask", "split", "position", "input"),
        [
            (
                str(row["subtask"]),
                position["split"],
                _number_text(position["position"]),
                "read to the end" if row["finished"] else "goes on",
            )
            for row in rows
            for position in row["positions"]
        ],
    )
    gaps = [
        (position["split"], f"{first:,}", f"{end - 1:,}", f"{end - first:,}")
        for row in rows
        for position in row["positions"]
        for first, end in position["gaps"]
    ]
    if gaps:
        yield table("Given up: deleted before it was read", ("split", "from", "to", "offsets"), gaps)
    transactions = [
        (str(row["subtask"]), committable["name"], str(committable["checkpoint_id"]), committable["state"])
        for row in rows
        for committable in row["committables"]
    ]
    if transactions:
        yield table("Transactions", ("subtask", "name", "of checkpoint", "state"), transactions)
    yield table(
        "Snapshots",
        ("subtask", "state in", "size"),
        [(str(row["subtask"]), row["state"]["path"], size_text(row["state"]["size_bytes"])) for row in rows],
    )
