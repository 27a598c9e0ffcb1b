"""A dead letter as commands show it: a row of a table, and lines."""

from __future__ import annotations

from collections.abc import Iterator

from twopc.cli.tables import moment
from twopc.kafka.found_letter import FoundLetter
from twopc.kafka.record_rows import shown


def is_of(letter: FoundLetter, step: str | None, reason: str | None) -> bool:
    """Say whether a letter is of a step and an exception with these texts."""
    exception = f"{letter.text('exception.class.name')}: {letter.text('exception.message')}"
    return (step or "") in letter.text("class.name") and (reason or "") in exception


def cells(letter: FoundLetter, replayed: bool) -> tuple[str, ...]:
    """Return a letter as a row of a table."""
    message, *_ = letter.text("exception.message").splitlines() or [""]
    exception = f"{letter.text('exception.class.name')}: {message}"
    origin = "" if letter.origin is None else str(letter.origin)
    return (str(letter.place), origin, letter.text("class.name"), exception, "replayed" if replayed else "")


def lines(letter: FoundLetter, replayed: bool) -> Iterator[tuple[str, str]]:
    """Yield all of a letter for people: a name and a text."""
    yield "letter", f"{letter.place}{', replayed' if replayed else ''}"
    yield "record", "its letter does not say" if letter.origin is None else str(letter.origin)
    if letter.timestamp is not None:
        yield "time", moment(letter.timestamp)
    yield "job", letter.text("connector.name")
    yield "went wrong in", f"{letter.text('class.name')} ({letter.text('stage')})"
    if letter.shortened:
        yield "shortened", letter.shortened
    yield "key", shown(letter.key)
    yield "value", shown(letter.value)
    for name, value in letter.headers:
        yield f"header {name}", shown(value)
    yield "exception", f"{letter.text('exception.class.name')}: {letter.text('exception.message')}"
    if trace := letter.text("exception.stacktrace"):
        yield "traceback", f"\n{trace.rstrip()}"
