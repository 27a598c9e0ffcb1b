"""The tables of the docs that say what the code does, made by asking the code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import product
from string import ascii_lowercase
from typing import Any, get_args

from coordinator.checkpoint import CHECKPOINT_TRANSITIONS, CheckpointPhase
from coordinator.status import PHASE_CHANGES, Phase
from twopc import events
from twopc.config import RunSettings
from twopc.faults.crash_table import CrashPoint
from twopc.kafka.clients.described_transaction import BrokerState, Described
from twopc.kafka.transactions.slots import SLOT_TRANSITIONS, SlotState
from twopc.kafka.transactions.transaction_verdict import Evidence, Recorded, Verdict, Witness, judge
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import ENTRY_TYPES
from twopc.protocol.messages import (
    Abort,
    Complete,
    FencedOff,
    Finish,
    ToCoordinator,
    ToSubtask,
    Trigger,
    Welcome,
)
from twopc.protocol.subtask_state import CommitPending, End, PreCommitted, SubtaskState
from twopc.setting import settings_of

_RECORDED = Recorded(producer_id=7, producer_epoch=3, start_ms=1_000, topic_ids={"out": "id"})
_STARTS = {"its own": 1_000, "later": 2_000, "earlier": 500, "none (-1)": -1}
_PRODUCERS = {"same id and epoch": (7, 3), "same id, other epoch": (7, 4), "other id": (8, 0)}
_TOPICS = {"whole": {"out": "id"}, "deleted": {}, "created again": {"out": "another"}}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _says(kind: type[Any]) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def messages() -> str:
    """Every message between coordinator and subtasks, from the classes that the codec carries."""
    rows = [
        (direction, f"`{kind.__name__}`", ", ".join(field.name for field in dataclasses.fields(kind)), _says(kind))
        for direction, union in (("to a subtask", ToSubtask), ("to the coordinator", ToCoordinator))
        for kind in get_args(union)
    ]
    return table(["direction", "message", "carries", "says"], rows)


def job_events() -> str:
    """Every class of event, with its fields; of all events, what the base has."""
    base = {field.name for field in dataclasses.fields(events.JobEvent)}
    rows = [
        (f"`{kind.__name__}`", teller, ", ".join(_own_fields(kind, base)), _says(kind))
        for teller, union in (("coordinator", events.CoordinatorEvent), ("driver", events.DriverEvent))
        for kind in get_args(union)
    ]
    return table(["event", "told by the", "fields of its own", "says"], rows)


def _own_fields(kind: type[Any], base: Iterable[str]) -> Iterable[str]:
    return (field.name for field in dataclasses.fields(kind) if field.name not in base)


def ledger_facts() -> str:
    """Every kind of ledger entry."""
    rows = [
        (f"`{kind.KIND}`", ", ".join(field.name for field in dataclasses.fields(kind)), _says(kind))
        for kind in ENTRY_TYPES
    ]
    return table(["kind", "holds", "says"], rows)


def phases() -> str:
    """The coordinator's phases, and what leads from one to the next."""
    changes = _grouped(PHASE_CHANGES, lambda change: (change.after, change.when))
    rows = [(", ".join(change.before.name for change in group), after.name, when) for (after, when), group in changes]
    return f"{_meanings('phase', Phase)}\n\n{table(['from', 'to', 'when'], rows)}"


def checkpoint_transitions() -> str:
    """What may happen to a checkpoint in each of its phases."""
    rows = [
        (before.name, event.value, change.phase.name, change.effect.value if change.effect else "")
        for before, event, change in CHECKPOINT_TRANSITIONS
    ]
    head = ["from", "when", "to", "the coordinator"]
    return f"{_meanings('phase', CheckpointPhase)}\n\n{table(head, rows)}"


def slots() -> str:
    """What may happen to a slot in each of its states."""
    rows = [(before.name, event.value, after.name) for before, event, after in SLOT_TRANSITIONS]
    return f"{_meanings('state', SlotState)}\n\n{table(['from', 'when', 'to'], rows)}"


def _meanings(name: str, kind: type[Enum]) -> str:
    return table([name, "is"], [(each.name, str(each.value)) for each in kind])


def checkpoint_words() -> str:
    """Why a checkpoint is taken, and why it may fail."""
    kinds = ", ".join(f"`{kind.value}`" for kind in CheckpointKind)
    failures = table(["reason", "means"], [(f"`{reason.value}`", reason.meaning) for reason in FailureReason])
    return f"A checkpoint is one of {kinds}. It ends otherwise than completed for one of these reasons:\n\n{failures}"


def subtask() -> str:
    """What a subtask does about each message, found by telling it."""
    told: list[tuple[str, ToSubtask]] = [
        ("the next id", Trigger(CheckpointId(3))),
        ("the next id, final", Trigger(CheckpointId(3), final=True)),
        ("the last id again", Trigger(CheckpointId(2))),
        ("an older id", Trigger(CheckpointId(1))),
        ("the last id", Complete(CheckpointId(2))),
        ("an older id", Complete(CheckpointId(1))),
        ("a later id, its own lost", Complete(CheckpointId(3))),
        ("the last id", Abort(CheckpointId(2), "")),
        ("", Finish()),
        ("", FencedOff("a newer attempt")),
        ("", Welcome()),
    ]
    return table(
        ["message", "with", "a subtask that has pre-committed checkpoints 1 and 2", "pending then"],
        [(f"`{type(message).__name__}`", about, *_reaction(message)) for about, message in told],
    )


def _reaction(message: ToSubtask) -> tuple[str, str]:
    state = SubtaskState()
    for number in (CheckpointId(1), CheckpointId(2)):
        state.on(Trigger(number))
        state.pre_committed(PreCommitted(number, (Committable(f"t{number}", number, SubtaskIndex(0), {}),), ()))
    action = state.on(message)
    words = type(action).__name__
    if isinstance(action, CommitPending):
        words += f": {', '.join(str(entry.checkpoint_id) for entry in action.due)}"
        state.committed(message.checkpoint_id)  # type: ignore[union-attr]
    elif isinstance(action, End) and action.fenced:
        words += ", as fenced"
    if not state.reading:
        words += "; reads nothing more"
    return words, ", ".join(str(item.checkpoint_id) for item in state.committables) or "nothing"


def crash_table() -> str:
    """Every place where a process may end; what recovery does about many of them is written once, under a letter."""
    recoveries = list(dict.fromkeys(place.value.recovery for place in CrashPoint))
    letters = {recovery: ascii_lowercase[index] for index, recovery in enumerate(recoveries)}
    rows = [
        (row.code, row.where.value, row.happened, row.durable, letters[row.recovery])
        for row in (place.value for place in CrashPoint)
    ]
    points = table(["point", "where", "what has happened", "durable", "then"], rows)
    return f"{points}\n\n{table(['then', 'what recovery does'], [(letters[each], each) for each in recoveries])}"


def verdicts() -> str:
    """The verdict for every combination of evidence; rows with the same verdict for the same reason are one."""
    cells = [
        (start, producer, state, _outcome(_described(start, producer, state)))
        for start, producer, state in product(_STARTS, _PRODUCERS, BrokerState)
    ]
    rows = []
    for (start, outcome), group in _grouped(cells, lambda cell: (cell[0], cell[3])):
        by_producer = {producer: [cell[2] for cell in group if cell[1] == producer] for producer in _PRODUCERS}
        for states, same in _grouped([item for item in by_producer.items() if item[1]], lambda item: item[1]):
            producers = "any" if len(same) == len(_PRODUCERS) else " / ".join(item[0] for item in same)
            named = "any" if len(states) == len(BrokerState) else ", ".join(state.value for state in states)
            rows.append((start, producers, named, outcome))
    rows.append(("nothing is known of the id", "", "", _outcome(None)))
    combinations = (len(cells) + 1) * len(_TOPICS) * 2 * len(Witness)
    head = ["start time", "producer", "state", "verdict"]
    return f"{table(head, rows)}\n\nThat is every one of {combinations} combinations."


def _grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> list[tuple[Any, list[Any]]]:
    """Bring together what has the same key, in the order in which the keys come first."""
    groups: dict[str, tuple[Any, list[Any]]] = {}
    for item in items:
        groups.setdefault(repr(key(item)), (key(item), []))[1].append(item)
    return list(groups.values())


def _described(start: str, producer: str, state: BrokerState) -> Described:
    return Described(state, *_PRODUCERS[producer], _STARTS[start])


def _outcome(described: Described | None) -> str:
    """The verdict in words, over all that else may be known."""
    found = {
        (topics, confirmed, witness): _word(judge(_RECORDED, Evidence(described, _TOPICS[topics], confirmed, witness)))
        for topics, confirmed, witness in product(_TOPICS, (True, False), Witness)
    }
    words = set(found.values())
    if len(words) == 1:
        return words.pop()
    if all(word == found[topics, False, Witness.UNKNOWN] for (topics, _, _), word in found.items()):
        return f"{found['whole', False, Witness.UNKNOWN]}; **lost** if a topic was deleted or created again"
    proven = {word for (_, confirmed, witness), word in found.items() if confirmed or witness is Witness.COMMITTED}
    others = {
        word for (_, confirmed, witness), word in found.items() if not confirmed and witness is not Witness.COMMITTED
    }
    if len(proven) == 1 and len(others) == 1:
        return f"{proven.pop()} if it was confirmed, or the witness says so; else {others.pop()}"
    raise ValueError(f"the verdict on {described} depends on more than this table can say")


def _word(verdict: Verdict) -> str:
    words = {"Commit": "commit", "AlreadyCommitted": "already committed", "Lost": "**lost**", "Wait": "ask again"}
    return words[type(verdict).__name__]


def settings() -> str:
    """Every setting of a run, as it is declared."""
    rows = [
        (" ".join(f"`{flag}`" for flag in each.flags) or "-", f"`{each.variable}`", each.default, each.help)
        for each in settings_of(RunSettings).values()
    ]
    return table(["option", "environment", "default", "what it is"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "settings": settings,
    "messages": messages,
    "events": job_events,
    "ledger": ledger_facts,
    "phases": phases,
    "transitions": checkpoint_transitions,
    "checkpoints": checkpoint_words,
    "subtask": subtask,
    "slots": slots,
    "verdicts": verdicts,
    "crashes": crash_table,
}
