"""The input that an attempt does not read, looked for beside its subtasks, and what comes of it.

Splits belong to an attempt, from its plan on. So what is new is read by a new attempt, which starts as soon as a
checkpoint has completed: little is read twice, and nothing that readers see. Its plan finds out what there is then.

Invariants: what the next plan would refuse ends no attempt that is well; one refusal, and what is hidden behind one
position, is told once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from twopc import events
from twopc.context import JobContext
from twopc.driver.actions import refuse_what_no_sink_takes
from twopc.driver.edge import Edge
from twopc.driver.effects import UNTIMED, Action, Log, Notice, Script, Tell, do
from twopc.driver.restart import PlannedRestart
from twopc.driver.restore_checks import moved_keys_of, refuse_uneven_inputs
from twopc.errors import ConfigurationError, TwoPhaseCommitError
from twopc.graph import JobDefinition
from twopc.input_now import HiddenInput, InputNow, KeysNow, Places
from twopc.key_spread import keys_apart
from twopc.listing import listed
from twopc.protocol import requests
from twopc.source import Source, SourcePlanner, Split

FIRST_SECONDS = 10.0
"""When the first two looks come, each after the one before: what is hidden is told of at the second."""

MOST_NOTES = 10
"""Of so many partitions is told why they can't be read further."""

_REFUSED = "The job goes on without it, until it starts again: that is refused then"
_LEFT_OUT = "this job does not look for it (discovery): it goes on without it, and reads it from its next start on"


class InputHasGrown(PlannedRestart):
    """There is more to read: the attempt ends, and the next one reads it."""


@dataclass(frozen=True, slots=True)
class LookAtInput(Action[InputNow]):
    """Find what the attempt does not read, and with `keys` where keys are; `before` was hidden at the last look."""

    context: JobContext
    read: tuple[Split, ...]
    before: Places
    keys: bool = False

    def carry_out(self, edge: Edge) -> InputNow:
        with edge.source.open_planner(self.context) as planner:
            hidden = tuple(planner.hidden(self.read, self.before))
            keys = keys_now(edge.definition, planner, self.read) if self.keys else None
            try:
                added = planner.added(self.read)
                left_out = planner.left_out(self.read)
                self._refuse(edge, added)
            except ConfigurationError as error:
                return InputNow(refused=f"{error}. {_REFUSED}", hidden=hidden, keys=keys)
        refused = f"{listed(split.id for split in left_out)}; {_LEFT_OUT}" if left_out else ""
        return InputNow(tuple(added), refused, hidden, keys)

    def _refuse(self, edge: Edge, added: Sequence[Split]) -> None:
        """Raise ConfigurationError for what can't be read beside what is read."""
        every = list({each.id: each for each in (*self.read, *added)}.values())
        if added:
            refuse_uneven_inputs(self.context.job, edge.definition, every)
            for why in moved_keys_of(edge.definition, {split.id for split in self.read}, every).values():
                raise ConfigurationError(why)
            refuse_what_no_sink_takes(edge, self.context, every)


@dataclass(frozen=True, slots=True)
class NoteInput(Action[None]):
    """Have the coordinator tell whoever asks it what of the input is hidden, or not read; nothing: all is well."""

    context: JobContext
    notes: tuple[str, ...]

    def carry_out(self, edge: Edge) -> None:
        edge.coordinator.ask(self.context.job, requests.NoteInput(self.context.attempt, self.notes))


@dataclass(frozen=True, slots=True)
class FindHidden(Action[list[HiddenInput]]):
    """Find what is written in these splits and can't be read yet, each with its cause."""

    context: JobContext
    splits: tuple[Split, ...]

    def carry_out(self, edge: Edge) -> list[HiddenInput]:
        with edge.source.open_planner(self.context) as planner:
            return planner.hidden(self.splits, None)


@dataclass(frozen=True, slots=True)
class FindKeys(Action[KeysNow]):
    """Find which keys of the first records in these splits have several states."""

    context: JobContext
    splits: tuple[Split, ...]

    def carry_out(self, edge: Edge) -> KeysNow:
        with edge.source.open_planner(self.context) as planner:
            return keys_now(edge.definition, planner, self.splits)


def keys_now(definition: JobDefinition, planner: SourcePlanner, read: Sequence[Split]) -> KeysNow:
    """Return where the keys are of the splits whose records come to state by key."""
    keyed = definition.keyed_inputs
    sources = {source for before in keyed.values() for source in before}
    samples = planner.key_samples([split for split in read if split.source in sources])
    return KeysNow(tuple(keys_apart(samples, keyed).values()), not all(sample.whole for sample in samples))


@dataclass(slots=True)
class InputWatch:
    """The input that an attempt knows of and does not read; `read` is what it reads."""

    context: JobContext
    read: tuple[Split, ...]
    interval_seconds: float
    _found: Sequence[Split] = ()
    _found_after: int = 0
    _due_at: float | None = None
    _looks: int = 0
    _under_way: bool = False
    _refused: str = ""
    _hidden: Places = frozenset()
    _told: Places = frozenset()
    _keys: bool = True
    _notes: tuple[str, ...] = ()
    _noted: tuple[str, ...] = ()

    def due(self, now: float) -> Iterator[LookAtInput | NoteInput]:
        """Yield the question where it is time for it; the first comes some time after the attempt began to run.

        And what the last one has found out, where that is news.
        """
        if self._notes != self._noted:
            self._noted = self._notes
            yield NoteInput(self.context, self._notes)
        if self._due_at is None:
            self._due_at = now + self._pause
        if now >= self._due_at and not self._under_way and not self._found:
            self._under_way = True
            yield LookAtInput(self.context, self.read, self._hidden, self._keys)

    @property
    def deadline(self) -> float | None:
        return None if self._under_way or self._found else self._due_at

    @property
    def _pause(self) -> float:
        return min(FIRST_SECONDS, self.interval_seconds) if self._looks < 2 else self.interval_seconds

    def answered(self, answer: InputNow | Exception, completed: int, now: float) -> Iterator[Notice]:
        """Take in what there is, when so many checkpoints of the attempt have completed."""
        self._under_way = False
        self._looks += 1
        self._due_at = now + self._pause
        match answer:
            case InputNow():
                yield from self._tell_refused(answer.refused)
                yield from self._tell_hidden(answer.hidden)
                yield from self._tell_apart(answer.keys)
                self._note(answer)
                self._found, self._found_after = answer.added, completed
                if answer.added:
                    job, attempt = self.context.job, self.context.attempt
                    yield Tell(events.NewInputFound(job, attempt, UNTIMED, splits=self._named))
            case TwoPhaseCommitError():
                yield Log(logging.DEBUG, f"the input was not looked at yet: {answer}")
            case Exception():
                yield Log(logging.ERROR, "the input could not be looked at", answer)

    def look(self, completed: int) -> None:
        """Raise InputHasGrown where it is time for an attempt that reads what was found."""
        if self._found and completed > self._found_after:
            raise InputHasGrown(f"there is new input: {self._named}; the next attempt reads it, too")

    def _tell_refused(self, refused: str) -> Iterator[Notice]:
        if refused and refused != self._refused:
            yield Log(logging.WARNING, f"there is new input that is not read: {refused}", never_hidden=True)
            yield Tell(events.NewInputRefused(self.context.job, self.context.attempt, UNTIMED, message=refused))
        self._refused = refused

    def _tell_hidden(self, hidden: Sequence[HiddenInput]) -> Iterator[Notice]:
        """Tell what was hidden at the last look, too: transactions that end by themselves are nobody's concern."""
        self._hidden = frozenset(each.place for each in hidden)
        known = self._told & self._hidden
        lasting = [each for each in hidden if each.cause and each.place not in known]
        yield from told_of(self.context, lasting)
        self._told = known | {each.place for each in lasting}

    def _tell_apart(self, keys: KeysNow | None) -> Iterator[Notice]:
        """Tell of keys once; they are asked for until there is something to tell, or nothing more to find out."""
        if keys is not None:
            self._keys = keys.more and not keys.apart
            yield from told_apart(keys)

    def _note(self, answer: InputNow) -> None:
        causes = [each.cause for each in answer.hidden if each.cause]
        more = [f"and {len(causes) - MOST_NOTES} more partitions"] if len(causes) > MOST_NOTES else []
        refused = [f"there is new input that is not read: {answer.refused}"] if answer.refused else []
        self._notes = (*causes[:MOST_NOTES], *more, *refused)

    @property
    def _named(self) -> str:
        return listed(split.id for split in self._found)


def told_of(context: JobContext, hidden: Iterable[HiddenInput]) -> Iterator[Notice]:
    """Yield what tells people of input that is hidden."""
    for each in hidden:
        yield Log(logging.WARNING, each.cause, never_hidden=True)
        yield Tell(events.InputHidden(context.job, context.attempt, UNTIMED, split=each.split, message=each.cause))


def told_apart(keys: KeysNow) -> Iterator[Notice]:
    """Yield what tells people of keys that have several states."""
    for why in keys.apart:
        yield Log(logging.WARNING, why, never_hidden=True)


def tell_what_a_bounded_read_leaves(context: JobContext, source: Source, splits: Sequence[Split]) -> Script[None]:
    """Tell what a run can't look for while it lasts: what is hidden where it is to end, and keys that are apart."""
    if source.watch_ms is None or not context.settings.until_end:
        return
    yield from told_apart((yield from do(FindKeys(context, tuple(splits)))))
    for each in (yield from do(FindHidden(context, tuple(splits)))):
        cause = f"{each.cause}. This run ends before it (--until-end): run it again when that transaction has ended"
        yield from told_of(context, [replace(each, cause=cause)])


def watch_of(context: JobContext, source: Source, read: tuple[Split, ...]) -> InputWatch | None:
    """Return what looks beside an attempt; None where the source has nothing to look for, and for a bounded read."""
    interval_ms = source.watch_ms
    return None if interval_ms is None or context.settings.until_end else InputWatch(context, read, interval_ms / 1000)
