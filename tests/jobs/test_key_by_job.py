"""key_by over two topics of different partition counts, twice in a row, through kill -9: one count a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.slow_job import SlowJob
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.kafka.clients.topic_client import TopicClient
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

KEYS = 6
RECORDS = 3_000
"""Of each topic: more than are read before the second checkpoint, however slow a machine is at those."""

JOB = """
from twopc import Job, Json, KafkaSink, KafkaSource

def count(total, value):
    total = (total or 0) + 1
    return total, {**value, "n": total}

job = Job(name)
web = job.source(KafkaSource(f"{name}-web", value=Json()), name="web").map(slowly)
app = job.source(KafkaSource(f"{name}-app", value=Json()), name="app").map(slowly)
by_id = web.merge(app).key_by(lambda value: value["id"], name="by-id").stateful_map(count, name="count")
by_parity = by_id.key_by(lambda value: value["id"] % 2, name="by-parity").stateful_map(count, name="parity")
by_id.sink(KafkaSink(f"{name}-ids", key=Json(), value=Json()))
by_parity.sink(KafkaSink(f"{name}-parities", key=Json(), value=Json()))
"""


def counts(servers: str, topic: str) -> dict[bytes, list[int]]:
    """Return the counts of each key that a read_committed reader sees, in order."""
    found: dict[bytes, list[int]] = {}
    for record in read_topic(servers, topic):
        number = int((record.value or b"").rpartition(b":")[2].strip(b"}"))
        found.setdefault(record.key or b"", []).append(number)
    return {key: sorted(numbers) for key, numbers in found.items()}


@pytest.mark.proof
def test_every_record_counts_once_behind_two_key_bys_although_subtasks_were_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix, partitions in {"web": 3, "app": 2, "ids": 2, "parities": 1}.items():
        create_topic(servers, f"{name}-{suffix}", partitions)
    given = Counter(number % KEYS for number in range(RECORDS) for _ in ("web", "app"))
    for suffix, partitions in (("web", 3), ("app", 2)):
        writes = (Write(b'{"id": %d}' % (n % KEYS), partition=n % partitions) for n in range(RECORDS))
        produce(servers, f"{name}-{suffix}", writes)
    job = SlowJob(servers, name, tmp_path, JOB)
    job.survive(ArmedFault(CrashPoint.AFTER_END_TXN, checkpoint=2, subtask=0))
    # A second run has nothing more to read, in no stage of it.
    finished = job.run()
    assert finished.code == 0, finished.err
    assert counts(servers, f"{name}-ids") == {b"%d" % key: list(range(1, n + 1)) for key, n in given.items()}
    parities = Counter(dict.fromkeys((0, 1), 0))
    for key, n in given.items():
        parities[key % 2] += n
    assert counts(servers, f"{name}-parities") == {b"%d" % key: list(range(1, n + 1)) for key, n in parities.items()}
    with TopicClient(servers, {}) as client:
        made = client.topics([f"{name}-by-id-repartition", f"{name}-by-parity-repartition"])
    assert {each.removeprefix(f"{name}-"): info.partitions for each, info in made.items()} == {
        "by-id-repartition": 3,
        "by-parity-repartition": 3,
    }
