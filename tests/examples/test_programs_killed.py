"""The example programs, unmodified, on a real broker: exact through `kill -9` at moments drawn by chance."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.examples.programs import PROGRAMS
from tests.examples.programs.kit import PARTITIONS, Out, Output, Program, Sent, text
from tests.examples.supervised import SupervisedProgram
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import Write, create_topic, produce, read_topic

RECORDS = 6_000
LUMPS = 24
KILLS = 4
"""Half of them at moments that are the same each time, half at others."""
LONGEST_PAUSE = 0.4

pytestmark = pytest.mark.timeout(900)


def feed(servers: str, records: list[Sent]) -> None:
    """Write the records to their topics, each topic's in their order."""
    for topic in dict.fromkeys(record.topic for record in records):
        mine = [record for record in records if record.topic == topic]
        produce(servers, topic, (Write(each.value, each.key, each.partition, each.timestamp) for each in mine))


def committed(servers: str, program: Program) -> Output:
    return {
        topic: [
            Out(each.partition, text(each.key), serde.deserialize(each.value), dict(each.headers))
            for each in read_topic(servers, topic)
        ]
        for topic, serde in program.outputs.items()
    }


@pytest.mark.drill
@pytest.mark.proof
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_is_exact_through_kills_of_its_processes(program: Program, tmp_path: Path) -> None:
    seed = SystemRandom().randrange(1_000_000)
    seeded, chance = Random(1), Random(seed)
    sent = program.draw(chance, RECORDS)
    struck = set(seeded.sample(range(2, LUMPS), KILLS // 2)) | set(chance.sample(range(2, LUMPS), KILLS // 2))
    with LocalBroker(tmp_path / "broker", light=True) as broker:
        servers = broker.bootstrap_servers
        for topic in (*program.inputs, *program.outputs):
            create_topic(servers, topic, PARTITIONS)
        with SupervisedProgram(program, servers, tmp_path, "--host", "process") as run:
            for lump in range(LUMPS):
                feed(servers, sent[lump * len(sent) // LUMPS : (lump + 1) * len(sent) // LUMPS])
                time.sleep(chance.uniform(0.0, LONGEST_PAUSE))
                if lump in struck:
                    run.kill(chance)
                run.tend()
            run.finish()
        complaints = program.complaints(sent, committed(servers, program))
    assert complaints == [], f"seed {seed}, killed: {', '.join(run.kills)}"
