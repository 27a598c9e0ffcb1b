"""The example query, killed between two commits and started again, against the answer computed from the file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import flights_by_sql
import pytest
from flights_by_sql import LATE_MINUTES, OUTPUT, landed, load
from flights_data import flights

from twopc.faults.armed_faults import ArmedFault, armed
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import read_topic

pytestmark = [pytest.mark.spark, pytest.mark.proof, pytest.mark.timeout(600)]

FLIGHTS, OFFSETS_A_BATCH = 20_000, 8_000
SURELY_PASSED = timedelta(days=5)
"""The watermark is a day behind both ends of the flights, and a flight's ends may be two days apart."""

Answer = dict[tuple[str, str], tuple[int, int, int]]


def started(servers: str, work: Path, environment: dict[str, str], *faults: ArmedFault) -> int:
    command = [sys.executable, str(flights_by_sql.__file__), "run", servers, str(work), str(OFFSETS_A_BATCH)]
    variables = os.environ | environment | {VARIABLE: armed(faults, work)}
    return subprocess.run(command, env=variables, timeout=300, check=False).returncode


def loaded() -> list[dict[str, Any]]:
    return list(islice((flight for chunk in flights() for flight in chunk), FLIGHTS))


def answer(seen: list[dict[str, Any]]) -> Answer:
    """Flights, late departures, and those of them that arrived in time, of each airport and day."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for flight in filter(landed, seen):
        late = flight["dep_delay"] >= LATE_MINUTES
        made_up = late and flight["arr_delay"] is not None and flight["arr_delay"] < LATE_MINUTES
        count = counts.setdefault((flight["origin"], str(flight["time_hour"].date())), Counter())
        count.update(flights=1, late=late, made_up=made_up)
    return {day: (count["flights"], count["late"], count["made_up"]) for day, count in counts.items()}


def test_every_day_is_told_once_although_the_query_was_killed(
    broker: Broker, light_jvms: dict[str, str], tmp_path: Path
) -> None:
    load(broker.bootstrap_servers, FLIGHTS)
    fault = ArmedFault(CrashPoint.AFTER_END_TXN, checkpoint=2)
    assert started(broker.bootstrap_servers, tmp_path, light_jvms, fault) == -signal.SIGKILL
    assert started(broker.bootstrap_servers, tmp_path, light_jvms) == 0

    written = [json.loads(each.value or b"") for each in read_topic(broker.bootstrap_servers, OUTPUT)]
    told = {(row["origin"], row["day"]): (row["flights"], row["late"], row["made_up"]) for row in written}
    assert len(told) == len(written)
    seen = loaded()
    right = answer(seen)
    assert {day: right.get(day) for day in told} == told
    passed = str((max(flight["time_hour"] for flight in seen) - SURELY_PASSED).date())
    assert told.keys() >= {day for day in right if day[1] < passed}
