"""Turns what the simulation notes into the lines of a transcript: time, who, message."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, is_dataclass

from tests.simulation.world import World
from twopc.faults.points import CrashPoint

_AT_A_PLACE = re.compile(r"at ([A-Z_]+) of \d+")
_FENCES = "fences "
_MESSAGES = {"says": "{} -> coordinator", "hears": "coordinator -> {}"}


_VERBS = {"checkpoint-triggered": "triggers", "checkpoint-aborted": "aborts"}
_ENDS = ("FINISHED", "INVARIANT", "sees")


@dataclass(slots=True)
class TranscriptWorld(World):
    """A world that keeps its notes as lines that people read; after `shown_until_ms` only how the job ends."""

    shown_until_ms: int = 0
    lines: list[str] = field(default_factory=list)

    def note(self, who: str, what: str, *details: object) -> None:
        sentence = _of_broker(what, *details) if who == "broker" else _of_process(what, *details)
        if not sentence or (self.now_ms > self.shown_until_ms and what not in _ENDS):
            return
        speaker = _MESSAGES.get(what, "{}").format(who)
        line = f"{self.now_ms:>6}  {speaker:<28}{sentence}".rstrip()
        start, fences, name = line.partition(_FENCES)
        if fences and self.lines and self.lines[-1].startswith(start + fences):
            self.lines[-1] += f", {name}"
        else:
            self.lines.append(line)


def _of_broker(what: str, name: object, *details: object) -> str:
    """Return what the broker does; an empty text for what only repeats another note."""
    match (what, *details):
        case ("InitProducerId", _, epoch):
            return f"{_FENCES}{name}" if epoch else ""
        case ("EndTxn commit" | "EndTxn abort", _, answer):
            return "" if str(answer).endswith("NONE") else f"refuses {what} of {name}: {str(answer)[3:]}"
        case ("CompleteCommit" | "CompleteAbort", *_):
            return f"{'commits' if what == 'CompleteCommit' else 'aborts'} {name}"
        case ("EXPIRED", *_):
            return f"finds that the transaction of {name} has expired"
        case _:
            return _joined(what, name, *details)


def _of_process(what: str, *details: object) -> str:
    match (what, *details):
        case ("says" | "hears", message):
            return _message(message)
        case ("COMPLETION RECORD", checkpoint):
            return f"holds the completion record of checkpoint {checkpoint}"
        case ("attempt-started", start, *_):
            return f"starts {start}" if isinstance(start, str) else f"starts an attempt from checkpoint {start}"
        case ("checkpoint-triggered" | "checkpoint-aborted", checkpoint, *why):
            return f"{_VERBS[what]} checkpoint {_joined(f'{checkpoint}:', *why)}".rstrip(": ")
        case ("KILLED", why):
            return f"KILLED {_place(str(why))}"
        case ("exits",):
            return ""
        case (_, outcome, evidence) if "@" in what:
            return f"settles {what}: {outcome} ({evidence})"
        case _:
            return _joined(what, *details)


def _joined(*words: object) -> str:
    return " ".join(filter(None, map(str, words)))


def _message(message: object) -> str:
    """Return `Trigger 2 (final)` for `Trigger(checkpoint_id=2, final=True)`."""
    if not is_dataclass(message):
        return re.sub(r"Ack\((\d+): (.*); (.*)\)", r"Ack \1 (positions \2; committables \3)", str(message))
    name, number, said = type(message).__name__, "", []
    for each in fields(message):
        value = getattr(message, each.name)
        if each.name == "checkpoint_id":
            number = f" {value}"
        elif value is True:
            said.append(each.name)
        elif value and isinstance(value, str):
            said.append(value)
    return f"{name}{number}" + (f" ({'; '.join(said)})" if said else "")


def _place(why: str) -> str:
    match = _AT_A_PLACE.fullmatch(why)
    return f"at {match[1]}: {CrashPoint[match[1]].value.happened}" if match else why
