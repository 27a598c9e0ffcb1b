"""What a job does whose sink has stopped while its source goes on: its memory, and that nothing is lost.

    python benchmarks/backpressure.py [--records 5000000] [--pauses 3] [--seconds 10] [--host spark] [--json FILE]

The job writes through a gate in front of the broker, and reads past it. The gate is shut again and again while the job
is at full rate, and opens after a while. Then the output is judged record by record.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import threading
import time
from pathlib import Path

from peers.case import Case
from peers.measure import started
from peers.ours import Twopc, TwopcProcess
from peers.system import Place
from peers.topics import Inputs, committed_end, read_output
from peers.workloads import UpperJudge

from twopc.bench.usage import Usage, UsageSampler
from twopc.faults.tcp_proxy import Connection, Direction, Proxy
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

LIMIT_SECONDS = 600.0
JOB = '''"""Upper-case, through the gate."""

from twopc import Job, KafkaSink, KafkaSource

job = Job({name!r})
job.source(KafkaSource({source!r})).map(bytes.upper).sink(KafkaSink("out", bootstrap_servers={writes!r}))
'''


class Gate(Proxy):
    """Holds what comes, both ways, while it is shut; nothing is lost. `pauses`: from when to when, in Unix seconds."""

    def __init__(self, target: int, port: int) -> None:
        super().__init__(target, port)
        self.pauses: list[tuple[float, float]] = []
        self._flowing = threading.Event()
        self._flowing.set()
        self._ended = threading.Event()

    def run(self, servers: str, case: Case, count: int, seconds: float) -> None:
        """Shut each time that another part of the output is there."""
        for number in range(1, count + 1):
            due = case.records * number // (count + 1)
            while committed_end(servers, "out", case.partitions) < due:
                if self._ended.wait(0.1):
                    return
            began = time.time()
            self._flowing.clear()
            self._ended.wait(seconds)
            self._flowing.set()
            self.pauses.append((began, time.time()))

    def stop(self) -> None:
        self._ended.set()

    def _forwards(self, connection: Connection, direction: Direction, piece: bytes) -> bool:
        self._flowing.wait()
        return True


def run_paused(place: Place, host: str, gate: Gate, pausing: threading.Thread) -> list[Usage]:
    """Run the job to its end beside the pauses; return its usage."""
    system = TwopcProcess() if host == "process" else Twopc()
    launch = system.launch_file(Case(), place, str(place.folder / "job.py"))
    log = place.folder / "log"
    with UsageSampler(frozenset({os.getpid()})) as sampler, started(launch, log) as process:
        pausing.start()
        try:
            code = process.wait(LIMIT_SECONDS)
        finally:
            gate.stop()
            pausing.join()
    if code != 0:
        raise SystemExit(log.read_text()[-2_000:])
    return sampler.samples


def measure(broker: LocalBroker, gate: Gate, folder: Path, case: Case, options: argparse.Namespace) -> None:
    """Fill, run, judge, print."""
    servers = broker.bootstrap_servers
    source = Inputs(servers).topic(case)
    create_topic(servers, "out", case.partitions)
    place = Place(servers, source, "out", "backpressure", folder)
    (folder / "job.py").write_text(JOB.format(name=place.name, source=source, writes=broker.proxied_servers))
    pausing = threading.Thread(target=gate.run, args=(servers, case, options.pauses, options.seconds))
    samples = run_paused(place, options.host, gate, pausing)
    judge = UpperJudge(case)
    read_output(servers, "out", case.partitions, judge)
    complaint = judge.complaint()
    body = {
        "records": case.records,
        "pauses": len(gate.pauses),
        "seconds_each": options.seconds,
        "largest_python_mb": {"paused": _largest(samples, gate.pauses), "whole": _largest(samples, [(0, math.inf)])},
        "output": complaint or "exact",
    }
    print(json.dumps(body, indent=1))
    if options.json:
        options.json.write_text(json.dumps(body, indent=1) + "\n")
    if complaint or len(gate.pauses) < options.pauses:
        raise SystemExit("the output is not exact, or the job had ended before all pauses")


def _largest(samples: list[Usage], spans: list[tuple[float, float]]) -> float:
    """Return the greatest resident set of a Python process in these spans of time, in MB."""
    chosen = [
        sample.largest_child_bytes / 1e6
        for sample in samples
        if any(began <= sample.at <= ended for began, ended in spans)
    ]
    return round(max(chosen, default=0.0))


def main() -> None:
    """Parse; start the brokers; measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--pauses", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--host", choices=["spark", "process"], default="spark")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twopc-backpressure-") as name:
        made = LocalBroker(Path(name) / "kafka", proxied=True)
        route = made.proxy_routes[0]
        with Gate(route.listens, route.advertised) as gate, made as broker:
            measure(broker, gate, Path(name), Case(records=options.records), options)


if __name__ == "__main__":
    main()
