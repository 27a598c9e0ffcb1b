"""A job meets one random fault after the other while its input grows and a reader watches its output.

SEED, RECORDS and SECONDS of the environment choose another soak; the same SEED plans the same faults.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.counting.numbered_input import NumberedInput
from tests.soak.feed_and_reader import Feed, Reader
from tests.soak.final_checks import FinalChecks
from tests.soak.keys import keys_for
from tests.soak.plan import plan
from tests.soak.processes import Processes
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

pytestmark = [pytest.mark.drill, pytest.mark.proof]

RECORDS = int(os.environ.get("RECORDS", "1000000"))
SECONDS = float(os.environ.get("SECONDS", "60"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1_000_000)))

INPUT_PARTITIONS = 2
OUTPUT_PARTITIONS = 4
KEYS = 200
#: The input is full before the last fault, so that faults meet the end of the job too.
FED_BY = 0.85
FINISH_SECONDS = 300.0
REPORT_SECONDS = 5.0

log = logging.getLogger(__name__)


@pytest.fixture
def soaked(tmp_path: Path) -> Iterator[Processes]:
    with LocalBroker(tmp_path / "broker") as broker:
        processes = Processes(broker, tmp_path, f"soak-{SEED}")
        try:
            yield processes
        finally:
            processes.close()
            broker.start()


@pytest.mark.timeout(SECONDS + FINISH_SECONDS + 360)
def test_a_million_records_are_exactly_once_under_a_random_mix_of_faults(
    soaked: Processes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log.info("replay with: make soak SEED=%d RECORDS=%d SECONDS=%g", SEED, RECORDS, SECONDS)
    servers = soaked.broker.bootstrap_servers
    source = NumberedInput(keys_for(KEYS, INPUT_PARTITIONS), INPUT_PARTITIONS, RECORDS)
    create_topic(servers, f"{soaked.job}-in", INPUT_PARTITIONS)
    create_topic(servers, f"{soaked.job}-out", OUTPUT_PARTITIONS)
    checks = FinalChecks(soaked, source, tmp_path)
    with (
        Feed(servers, f"{soaked.job}-in", source, SECONDS * FED_BY) as feed,
        Reader(servers, f"{soaked.job}-out", OUTPUT_PARTITIONS, source) as reader,
    ):
        play(soaked, feed, reader, checks)
    checks.judge(reader)


def play(soaked: Processes, feed: Feed, reader: Reader, checks: FinalChecks) -> None:
    """Let the plan happen, then calm; return when the job has finished and the reader has seen all of it."""
    steps = plan(SEED, SECONDS)
    began = time.monotonic()
    next_report = 0.0
    while soaked.report is None or not reader.done:
        now = time.monotonic() - began
        soaked.tend()
        checks.note_checkpoints()
        feed.check()
        reader.check()
        assert not reader.verifier.findings, [str(finding) for finding in reader.verifier.findings]
        while steps and steps[0].at <= now and soaked.report is None:
            step = steps.pop(0)
            log.info("%s", step)
            soaked.hurt(step)
        if feed.done and not soaked.until_end:
            soaked.stop_in_order()
        if now > SECONDS:
            soaked.heal()
        if now >= next_report:
            next_report = now + REPORT_SECONDS
            log.info("%.0f s: %d records seen", now, reader.verifier.seen)
        assert now < SECONDS + FINISH_SECONDS, f"the job did not finish: {reader.verifier.seen} of {RECORDS} seen"
        time.sleep(0.05)
    log.info("finished after %.1f s; ends of the driver: %s", time.monotonic() - began, dict(soaked.exits))
