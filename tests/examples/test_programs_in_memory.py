"""The example programs, unmodified, in memory: exact through crashes at moments drawn by chance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from tests.examples.programs import PROGRAMS
from tests.examples.programs.kit import PARTITIONS, Out, Output, Program, Sent, text
from twopc import Record
from twopc.connect import JobDefinition
from twopc.loader.job_loader import load_job
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment

SEEDS = range(4)
RECORDS = 150
MOST_AT_ONCE = 20
AFTER: tuple[Moment, ...] = ("processing", "pre-commit", "completion")

on_every_program = pytest.mark.parametrize("program", PROGRAMS, ids=str)


@cache
def job_of(program: Program) -> JobDefinition:
    return load_job(str(program.file))


def lumps(random: Random, sent: list[Sent]) -> Iterator[list[Sent]]:
    at = 0
    while at < len(sent):
        many = random.randint(1, MOST_AT_ONCE)
        yield sent[at : at + many]
        at += many


def disturb(run: MemoryRun, random: Random) -> None:
    """Crash, take a checkpoint, or let the job be."""
    what = random.choice((*AFTER, "checkpoint", "nothing"))
    match what:
        case "processing" | "pre-commit" | "completion":
            run.crash(after=what)
        case "checkpoint":
            run.checkpoint()


def played(program: Program, sent: list[Sent], random: Random, parallelism: int) -> Output:
    """Return what a program makes of these records, with crashes between them."""
    output: dict[str, list[Out]] = {topic: [] for topic in program.outputs}
    with MemoryRun(job_of(program), partitions=PARTITIONS, parallelism=parallelism) as run:
        for lump in lumps(random, sent):
            for each in lump:
                run.send_raw(each.topic, each.value, each.key, timestamp=each.timestamp, partition=each.partition)
            disturb(run, random)
            for topic, records in output.items():
                records += map(out, run.read(topic))
        run.checkpoint()
        for topic, records in output.items():
            records += map(out, run.read(topic))
    return output


def out(record: Record) -> Out:
    return Out(record.partition, text(record.key), record.value, dict(record.headers or ()))


@on_every_program
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_program_is_exact_through_crashes(program: Program, parallelism: int, seed: int) -> None:
    random = Random(seed)
    sent = program.draw(random, RECORDS)
    assert program.complaints(sent, played(program, sent, random, parallelism)) == []


@on_every_program
def test_a_record_that_is_lost_or_doubled_is_noticed_in_every_output(program: Program) -> None:
    random = Random(1)
    sent = program.draw(random, RECORDS)
    output = played(program, sent, random, 1)
    assert all(output.values())
    for topic, records in output.items():
        assert program.complaints(sent, {**output, topic: records[1:]})
        assert program.complaints(sent, {**output, topic: [*records, records[-1]]})
