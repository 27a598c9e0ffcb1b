"""What frequent checkpoints cost in throughput: a second with them and a second without, in turns, within one run.

    python benchmarks/in_turns.py [--systems twopc bare] [--records 10000000] [--interval-ms 100] [--runs 3]
                                  [--job upper] [--warm-up 8000] [--json FILE]

Where the speed of a machine changes from minute to minute, two runs say little of each other; neighbouring seconds of
one run do. A second with checkpoints is compared with the mean of the two without that are beside it; the first quarter
of each second is left out, because what is under way then belongs to the second before. Records count where the broker
appended them to the output. The bare loop, in runs between ours, shows what checkpoints cost that only ask the broker.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from peers.case import Case
from peers.measure import started
from peers.ours import Bare, TwopcProcess
from peers.system import Launch, Place
from peers.topics import APPEND_TIME, Inputs, committed_end
from turns import has_checkpoints
from warm import warm_up

from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

LIMIT_SECONDS = 600.0
LEFT_OUT = 0.25
EDGE_SECONDS = 2
"""So much at both ends of a run is left out."""


def ours(case: Case, place: Place) -> Launch:
    """Return the command of the job, by the program that lets checkpoints come and go."""
    plain = TwopcProcess().launch(case, place)
    return Launch([*_program("run_in_turns.py"), *plain.argv[plain.argv.index("run") :]], plain.env)


def bare(case: Case, place: Place) -> Launch:
    """Return that of the bare loop, by the program that does the same for it."""
    plain = Bare().launch(case, place)
    return Launch([*_program("bare_in_turns.py"), *plain.argv[2:]], plain.env)


def _program(name: str) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name(name))]


SYSTEMS = {"twopc": ours, "bare": bare}


def rates(
    servers: str, topic: str, partitions: int, first: int, last: int, unix_less_monotonic: float
) -> dict[int, float]:
    """Return the records a second of each of these seconds of the monotonic clock."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "in-turns", "enable.auto.commit": False})
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in range(partitions)}

    def appended_before(moment: float) -> int:
        stamp = int((moment + unix_less_monotonic) * 1000)
        asked = [TopicPartition(topic, partition, stamp) for partition in range(partitions)]
        found = consumer.offsets_for_times(asked, timeout=30)
        return sum(each.offset if each.offset >= 0 else ends[each.partition] for each in found)

    try:
        return {
            second: (appended_before(second + 1) - appended_before(second + LEFT_OUT)) / (1 - LEFT_OUT)
            for second in range(first, last)
        }
    finally:
        consumer.close()


def ratios(of: Mapping[int, float]) -> list[float]:
    """Compare each second that has checkpoints with those beside it, where records were written in all three."""
    return [
        rate / ((of[second - 1] + of[second + 1]) / 2)
        for second, rate in of.items()
        if has_checkpoints(second) and of.get(second - 1, 0.0) > 0 and of.get(second + 1, 0.0) > 0
    ]


def run_once(servers: str, source: str, number: int, case: Case, folder: Path, system: str) -> list[float]:
    """Run the job to its end; return what its seconds say."""
    target = f"out-{number}"
    create_topic(servers, target, case.partitions, settings=APPEND_TIME)
    place = Place(servers, source, target, target, folder / target)
    place.folder.mkdir()
    log = place.folder / "log"
    with started(SYSTEMS[system](case, place), log) as process:
        while process.poll() is None and committed_end(servers, target, case.partitions) == 0:
            time.sleep(0.1)
        first = time.monotonic()
        if process.wait(LIMIT_SECONDS) != 0:
            raise SystemExit(log.read_text()[-2_000:])
        last = time.monotonic()
    edge = (int(first) + EDGE_SECONDS, int(last) - EDGE_SECONDS)
    return ratios(rates(servers, target, case.partitions, *edge, time.time() - time.monotonic()))


def main() -> None:
    """Parse; start a broker; measure; print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=["twopc"])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--interval-ms", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--job", default="upper")
    parser.add_argument("--warm-up", type=int, default=8_000, help="transactions that the new broker serves before")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    case = Case(job=options.job, records=options.records, interval_ms=options.interval_ms)
    found: dict[str, list[float]] = {system: [] for system in options.systems}
    with tempfile.TemporaryDirectory(prefix="twopc-in-turns-") as name, LocalBroker(Path(name) / "kafka") as broker:
        servers = broker.bootstrap_servers
        warm_up(servers, options.warm_up)
        source = Inputs(servers).topic(case)
        for number, system in enumerate(options.systems * options.runs):
            found[system] += run_once(servers, source, number, case, Path(name), system)
            print(f"{system}: {_said(found[system])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"interval_ms": options.interval_ms, "ratios": found}) + "\n")


def _said(found: list[float]) -> str:
    if len(found) < 2:
        return f"{len(found)} seconds: take more records"
    error = statistics.stdev(found) / len(found) ** 0.5
    median, mean = statistics.median(found), statistics.mean(found)
    rate = f"{mean:.3f} (+- {error:.3f}), median {median:.3f}, of the rate without"
    return f"with checkpoints {rate}; {len(found)} seconds so far"


if __name__ == "__main__":
    main()
