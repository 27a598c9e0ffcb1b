"""Kafka Streams on the worked examples of `tests/worked_examples`, on its test driver: where it tells something else.

    PYTHONPATH=. .venv/bin/python benchmarks/examples_beside.py   # rows of docs/experiments/kafka_streams_examples.md

Timestamps are not compared where windows are told: ours is the last millisecond of the window, theirs that of the last
record in it. Neither is what is late: theirs is counted and gone. Each difference has a reason here; one without, and a
reason without its difference, ends this with exit code 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from peers.fetch import classes, jar_versions, jars, java

from tests.worked_examples import test_joins as joins
from tests.worked_examples import test_windows as windows
from twopc.windows import Hopping, Session, Sliding, Tumbling, Windows

PROGRAM = "kafka_streams_examples"
WITHIN_MS = 5
"""Of the joins of two streams in these examples."""
_LATE = re.compile(r"late \S*@-?\d+")
_TIME = re.compile(r"@-?\d+")

_BEFORE_ZERO = "theirs begin at zero or later"
_AT_ITS_END = "a window that its end belongs to is over there as time reaches its end, so a record of that time is late"
_TAKEN_BACK = "theirs has a tombstone for each session that is part of a greater one; nobody takes back what ours told"
REASONS: dict[str, str] = {
    "hopping: windows that begin before zero": _BEFORE_ZERO,
    "sliding: in order": f"{_BEFORE_ZERO}; {_AT_ITS_END}",
    "sliding: two at one time": _BEFORE_ZERO,
    "sliding: out of order within grace": _BEFORE_ZERO,
    "sliding: its own window is over": f"{_BEFORE_ZERO}; {_AT_ITS_END}",
    "sessions: not closed at equality": "a session is over there as time reaches its end and the gap, though a record "
    "of that time would be in it",
    "sessions: bridge, current": _TAKEN_BACK,
    "sessions: moved to the front, current": _TAKEN_BACK,
    "sessions: within the gap of a closed one": "sessions that are told are more than a gap apart with ours, so the "
    "record is late (decision 0038)",
    "streams: out of order within grace": "what is behind the other side by more than the window goes out alone there "
    "at once, though its grace is not over, and once more with whom it meets",
    "streams: late finds nothing that was told": "theirs meets a record that was told alone; with ours that is gone",
    "as of: grace, time that goes on far": "what waits there goes out when a record of the stream comes, and no other",
    "as of: grace, without a value": "a record without a value meets nothing there",
}


class Example(NamedTuple):
    """One on both systems: `command` is a line for the program, and `told` what ours tells, compared as it is there."""

    name: str
    command: str
    records: str
    told: Sequence[str]
    has_times: bool = True


def of_windows() -> Iterator[Example]:
    """Yield those of one output that is final or current, on times that Kafka has."""
    for what, examples in windows.EXAMPLES.items():
        for each in examples:
            how = [output for output in each.outputs if output != "late"]
            if len(how) == 1 and "-" not in each.records:
                command = "\t".join((*_window(each.windows, how[0]), str(each.grace_ms)))
                told = [kept for line in each.told if (kept := _without_late(line))]
                yield Example(f"{what}: {each.name}", command, each.records, told, has_times=False)


def of_joins() -> Iterator[Example]:
    """Yield those of two streams, of a stream with a table, now and as of a time, and of two tables."""
    for each in joins.STREAM_EXAMPLES:
        command = f"streams\t{each.how}\t{WITHIN_MS}\t{each.grace_ms}\t0"
        yield Example(f"streams: {each.name}", command, each.records, each.told)
    for each in joins.TABLE_EXAMPLES:
        yield Example(f"table: {each.name}", f"table\t{each.how}\t0\t0\t0", each.records, each.told)
    for as_of in joins.AS_OF_EXAMPLES:
        command = f"as-of\t{as_of.how}\t{as_of.keep_ms}\t{as_of.grace_ms}\t0"
        yield Example(f"as of: {as_of.name}", command, as_of.records, as_of.told)
    for how, told in joins.TABLES_TOLD.items():
        values = {int(at): value for at, value in (each.split(" ") for each in told.split(", "))}
        steps = enumerate(joins.STEPS.split(), 1)
        lines = [f"{record} -> {values[at]}@{at}" for at, record in steps if at in values]
        yield Example(f"tables: {how}", f"tables\t{how}\t0\t0\t0", joins.STEPS, lines)


def _window(window: Windows, how: str) -> tuple[str, ...]:
    match window:
        case Tumbling():
            return "tumbling", how, str(window.size_ms), "0"
        case Hopping():
            return "hopping", how, str(window.size_ms), str(window.every_ms)
        case Sliding():
            return "sliding", how, str(window.size_ms), "0"
        case Session():
            return "session", how, str(window.gap_ms), "0"
    raise AssertionError(window)


def _without_late(line: str) -> str:
    record, _, told = line.partition(" -> ")
    kept = [each for each in re.split(r", (?![^\[(]*[\])])", told) if not _LATE.fullmatch(each)]
    return f"{record} -> {', '.join(kept)}" if kept else ""


def told_by_kafka_streams(examples: Iterable[Example]) -> Iterator[list[str]]:
    """Yield what Kafka Streams tells in each example."""
    found = jars(PROGRAM)
    argv = [java(), "-cp", f"{classes(PROGRAM, found)}:{found}/*", "Examples"]
    asked = "".join(f"{example.command}\t{example.records}\n" for example in examples)
    answer = subprocess.run(argv, input=asked, capture_output=True, text=True, check=True).stdout
    lines: list[str] = []
    for line in answer.splitlines():
        if line:
            lines.append(line)
        else:
            yield lines
            lines = []


def main() -> int:
    """Print the table."""
    examples = [*of_windows(), *of_joins()]
    answers = list(told_by_kafka_streams(examples))
    assert len(answers) == len(examples)
    differing = []
    for example, theirs in zip(examples, answers, strict=True):
        ours = list(example.told)
        if not example.has_times:
            ours, theirs = ([_TIME.sub("", line) for line in lines] for lines in (ours, theirs))
        if ours != theirs:
            differing.append(example.name)
            print(
                f"| {example.name} | `{example.records}` | {_cell(ours)} | {_cell(theirs)} | "
                f"{REASONS.get(example.name, '**no reason is given**')} |"
            )
    same = len(examples) - len(differing)
    print(f"\n{same} of {len(examples)} examples are told alike ({jar_versions(jars(PROGRAM), 'kafka-streams')})")
    return int(set(differing) != REASONS.keys())


def _cell(lines: Sequence[str]) -> str:
    return "<br>".join(f"`{line}`" for line in lines) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
