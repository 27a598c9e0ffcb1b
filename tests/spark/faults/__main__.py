"""Plays `make cluster`: late_flights.py on a standalone cluster, checkpoints in S3, one of each fault, judged.

    python -m tests.spark.faults [-o json]

Every flight of 2013 goes through. Ends with 0 if all late ones came out once, with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.spark.faults.cluster_job import ClusterJob
from tests.spark.faults.fault_run import Recovery, line, play, table
from tests.spark.faults.kinds import BROKERS, KILLS, ROLLING, STOPS, Fault
from tests.spark.jvms import VARIABLE, light_options
from twopc.driver.restart import STABLE_SECONDS

WORKERS = 4
RATE = 300
FAULTS = (*KILLS, *STOPS)
BROKER_NODES = 3
BROKER_FAULTS = (*BROKERS, *ROLLING)


def main() -> int:
    """Play it; say what happens on standard error, and the table on standard output."""
    parser = argparse.ArgumentParser(prog="make cluster")
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    output = parser.parse_args().output
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="twopc-cluster-") as folder:
        recoveries, wrong = _played(Path(folder))
    report = {"exact": not wrong, "wrong": wrong, "recoveries": [asdict(each) for each in recoveries]}
    sys.stdout.write(json.dumps(report) + "\n" if output == "json" else f"{table(recoveries)}\n")
    _say("exactly once" if not wrong else "\n".join(("not exact:", *wrong[:20])))
    return 1 if wrong else 0


def _played(folder: Path) -> tuple[list[Recovery], list[str]]:
    (classes := folder / "classes").mkdir()
    environment = {VARIABLE: light_options(classes)}
    _say(f"starting S3, a broker, a master and {WORKERS} workers")
    with ClusterJob(folder / "one", workers=WORKERS, rate=RATE, environment=environment) as job:
        recoveries, wrong = _story(job, FAULTS)
    _say(f"the same with {BROKER_NODES} brokers")
    with ClusterJob(folder / "three", workers=WORKERS, rate=RATE, environment=environment, brokers=BROKER_NODES) as job:
        of_brokers, wrong_with_three = _story(job, BROKER_FAULTS)
    return recoveries + of_brokers, wrong + wrong_with_three


def _story(job: ClusterJob, faults: Sequence[Fault]) -> tuple[list[Recovery], list[str]]:
    _say(f"late_flights.py runs, {RATE} flights a second")
    recoveries = []
    for fault in faults:
        # Each by itself: the delay of a restart is the first again, and spare executors are warm.
        time.sleep(STABLE_SECONDS)
        for recovery in play(job, [fault]):
            recoveries.append(recovery)
            _say(line(recovery))
    _say("all other flights, and then: is each late one there, once?")
    return recoveries, job.finish(all_flights=True)


def _say(text: str) -> None:
    sys.stderr.write(f"==> {text}\n")


if __name__ == "__main__":
    sys.exit(main())
