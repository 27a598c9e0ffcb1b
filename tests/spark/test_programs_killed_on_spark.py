"""The example programs, unmodified, on Spark: exact through `kill -9` of their drivers and workers.

All run beside one another on one session; the process that is killed with it has all their drivers.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.examples.programs import PROGRAMS
from tests.examples.programs.kit import PARTITIONS, Program, Sent
from tests.examples.test_programs_killed import committed, feed
from tests.spark.conftest import START_SECONDS
from tests.spark.programs_together import PARALLELISM, ConcurrentPrograms
from twopc.faults.process import ManagedProcess, await_true
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.proof, pytest.mark.timeout(900)]

RECORDS = 800
LUMPS = 8
LONGEST_PAUSE = 1.0
WORKERS_KILLED = 6
SETTINGS = {"checkpoint_interval": "400ms", "restart_delay_max": "1s", "restart_attempts": "100"}


class Session:
    """The process that has all drivers and Spark, started again when it was killed; ended when its context is left."""

    def __init__(self, together: ConcurrentPrograms, folder: Path) -> None:
        self.kills: list[str] = []
        self._together = together
        self._folder = folder
        self._runs: list[ManagedProcess] = []
        self._start(together)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.__exit__()

    def kill_all(self) -> None:
        self.kills.append("everything")
        self._runs[-1].kill()

    def kill_worker(self, random: Random) -> None:
        """Kill one of the last workers of a program, if it still runs."""
        program = random.choice(list(self._together.servers))
        self.kills.append(Path(program).stem)
        with suppress(ProcessLookupError):
            os.kill(random.choice(self._together.workers(program)[-PARALLELISM:]), signal.SIGKILL)

    def await_workers(self) -> None:
        """Wait until every program has been at work since the last start."""
        await_true(
            lambda: all(len(self._together.workers(each)) >= n + PARALLELISM for each, n in self._before.items()),
            "not every program started",
            START_SECONDS,
        )

    def tend(self) -> None:
        """Start it again, where it was killed; nothing else ends it."""
        code = self._runs[-1].exit_code
        if code is not None:
            assert code == -signal.SIGKILL, f"it exited with {code}: {self._runs[-1].last_words(60)}"
            self._start(self._together)

    def finish(self) -> None:
        """Kill everything once more, and run all programs to the ends of their input."""
        self.kill_all()
        self._start(replace(self._together, until_end=True))
        assert self._runs[-1].wait() == 0, self._runs[-1].last_words(60)

    def _start(self, together: ConcurrentPrograms) -> None:
        number = len(self._runs)
        self._before = {program: len(together.workers(program)) for program in together.servers}
        command = together.command(self._folder / f"run-{number}.json")
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
        self._runs.append(ManagedProcess(command, environment, self._folder / f"run-{number}.log", START_SECONDS))


def houses(programs: tuple[Program, ...]) -> list[list[Program]]:
    """Share programs out so that no two in one house have a topic of one name."""
    shared: list[list[Program]] = []
    for program in programs:
        topics = {*program.inputs, *program.outputs}
        for house in shared:
            if topics.isdisjoint(topic for other in house for topic in (*other.inputs, *other.outputs)):
                house.append(program)
                break
        else:
            shared.append([program])
    return shared


def brokers_of_all(folder: Path, closing: ExitStack) -> dict[Program, str]:
    """Start a broker for each house, with the topics of its programs; return each program's."""
    servers = {}
    for number, house in enumerate(houses(PROGRAMS)):
        # Not a light one, which a busy machine may cut off from its own controller.
        broker = closing.enter_context(LocalBroker(folder / f"broker-{number}"))
        for program in house:
            servers[program] = broker.bootstrap_servers
            for topic in (*program.inputs, *program.outputs):
                create_topic(broker.bootstrap_servers, topic, PARTITIONS)
    return servers


def lump(sent: list[Sent], number: int) -> list[Sent]:
    return sent[number * len(sent) // LUMPS : (number + 1) * len(sent) // LUMPS]


def test_the_programs_are_exact_through_kills_on_spark(
    light_jvms: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in light_jvms.items():
        monkeypatch.setenv(name, value)
    seed = SystemRandom().randrange(1_000_000)
    seeded, chance = Random(1), Random(seed)
    sent = {program: program.draw(seeded, RECORDS) for program in PROGRAMS}
    struck = set(seeded.sample(range(LUMPS), WORKERS_KILLED // 2)) | set(
        chance.sample(range(LUMPS), WORKERS_KILLED // 2)
    )
    everything = chance.randrange(LUMPS)
    with ExitStack() as closing:
        servers = brokers_of_all(tmp_path, closing)
        together = ConcurrentPrograms(
            {str(each.file): servers[each] for each in PROGRAMS}, str(tmp_path), settings=SETTINGS
        )
        session = closing.enter_context(Session(together, tmp_path))
        for number in range(LUMPS):
            for program in PROGRAMS:
                feed(servers[program], lump(sent[program], number))
            session.await_workers()
            time.sleep(chance.uniform(0.0, LONGEST_PAUSE))
            if number in struck:
                session.kill_worker(chance)
            if number == everything:
                session.kill_all()
            session.tend()
        session.finish()
        complaints = {each.name: each.complaints(sent[each], committed(servers[each], each)) for each in PROGRAMS}
    assert not any(complaints.values()), f"seed {seed}, killed: {', '.join(session.kills)}: {complaints}"
