"""Restore drills of a real job on a real broker: killed in the middle of a commit, as it is found on a bad day.

One job is drilled four times, in this order: as it is, with a damaged checkpoint, after the broker has aborted the
pending transaction, and after retention has deleted what a position needs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.checkpoints.damages import flip_bit
from tests.drill.drilled import scratch_on
from tests.jobs.cli import CommandResult, twopc
from tests.stored_job import stored_path, tree
from twopc.checkpoints.catalog import read_job
from twopc.config import RunSettings
from twopc.drill.restore import RestorePlan, restore_drill
from twopc.drill.verdict import Check, CheckVerdict, DrillResult
from twopc.faults.process import ManagedProcess, await_true
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.input.marker_wait import await_markers
from twopc.kafka.transactions.resume import SettleAction, settle
from twopc.sink import Outcome
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("restore drill")]

JOB_FILE = str(Path(__file__).with_name("drilled_job.py"))
RECORDS, KEYS, PARTITIONS = 4_000, 13, 2
RESTORED = 2
STRUCK = 5
"""The checkpoint that is completed while a worker dies before it has committed."""


@dataclass(frozen=True, slots=True)
class Real:
    """All of the real job that a drill must leave as it is."""

    group: dict[int, int]
    ends: dict[int, tuple[int, int]]
    checkpoints: dict[str, str]
    transactions: dict[str, BrokerState]


@dataclass(frozen=True, slots=True)
class Drilled:
    """The four drills, what was there before and after the first, and what they left on the broker.

    pending: how many transactions wait to be committed. The other worker may be gone before it has committed its own.
    """

    whole: CommandResult
    damaged: DrillResult
    out_of_retention: DrillResult
    aborted: DrillResult
    pending: int
    before: Real
    after: Real
    left_behind: list[str]
    folder: Path

    @property
    def result(self) -> dict[str, Any]:
        body = json.loads(self.whole.out)
        assert isinstance(body, dict)
        return body


def check(result: DrillResult, name: str) -> Check:
    (found,) = [each for each in result.checks if each.name == name]
    return found


@pytest.fixture(scope="module")
def drilled(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Drilled:
    folder, servers = tmp_path_factory.mktemp("drilled"), broker.bootstrap_servers
    job = f"drilled-{uuid.uuid4().hex[:6]}"
    for suffix in ("in", "out"):
        create_topic(servers, f"{job}-{suffix}", PARTITIONS)
    numbers = range(RECORDS)
    produce(
        servers,
        f"{job}-in",
        (Write(b"%d" % n, key=b"k%d" % (n % KEYS), partition=n % KEYS % PARTITIONS) for n in numbers),
    )
    checkpoints = folder / "checkpoints"
    common = ("-b", servers, "--host", "process")
    run_and_kill(folder, job, common, checkpoints)

    def drill(checkpoint_dir: Path, restore_from: str) -> DrillResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DRILLED_JOB", job)
            patch.setattr("twopc.loader.job_loader._folders", set())
            plan = RestorePlan(JOB_FILE, str(checkpoint_dir), restore_from, scratch_dir=temporary)
            return restore_drill(plan, RunSettings(bootstrap_servers=servers, host="process"), say=lambda _: None)

    temporary = folder / "tmp"
    temporary.mkdir()
    await_still(servers, job)
    before, pending = look(servers, job, checkpoints), count_open(servers, checkpoints, job)
    whole = twopc(
        *("drill", JOB_FILE, *common, "--checkpoint-dir", str(checkpoints), "--from", str(RESTORED), "-o", "json"),
        *("--checkpoint-interval", "300ms", "--scratch-dir", str(temporary)),
        *("--junit", str(folder / "drill.xml")),
        DRILLED_JOB=job,
    )
    after = look(servers, job, checkpoints)
    damaged = drill(damaged_copy(checkpoints, folder / "damaged", job), "latest")
    abort_pending(servers, checkpoints, job)
    aborted = drill(checkpoints, str(RESTORED))
    delete_first_records(servers, f"{job}-in")
    return Drilled(
        whole=whole,
        damaged=damaged,
        out_of_retention=drill(checkpoints, str(RESTORED)),
        aborted=aborted,
        pending=pending,
        before=before,
        after=after,
        left_behind=[*scratch_on(servers), *(str(path) for path in temporary.iterdir())],
        folder=folder,
    )


def run_and_kill(folder: Path, job: str, common: tuple[str, ...], checkpoints: Path) -> None:
    """Kill driver and workers before a checkpoint that is complete was committed.

    All at once: a driver that has lost a worker only would commit what is pending.
    """
    struck = folder / "struck"
    command = (
        *("run", JOB_FILE, *common, "-p", str(PARTITIONS), "--checkpoint-dir", str(checkpoints), "--until-end"),
        *("--checkpoint-interval", "300ms", "--checkpoints-retained", "20", "--checkpoint-inline-bytes", "0"),
    )
    environment = os.environ | {
        "DRILLED_JOB": job,
        "DRILLED_CHECKPOINTS": str(checkpoints / job),
        # Where a worker is killed, and the job never started again, its folder stays.
        "TMPDIR": str(folder),
        "TWOPC_CRASH_POINT": f"BEFORE_COMMIT,checkpoint={STRUCK},subtask=0,once={struck},hold",
    }
    with ManagedProcess([sys.executable, "-m", "twopc", *command], environment, folder / "run.log", 240) as run:
        await_true(lambda: struck.exists() or run.exit_code is not None, f"no worker came to checkpoint {STRUCK}", 240)
        assert run.exit_code is None, run.output
        workers = psutil.Process(run.pid).children(recursive=True)
        run.send(signal.SIGKILL)
        run.wait()
    _, alive = psutil.wait_procs(workers, 60)
    assert not alive, "a worker did not end with its driver"


def look(servers: str, job: str, checkpoints: Path) -> Real:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": job, "isolation.level": "read_uncommitted"})
    try:
        asked = [TopicPartition(f"{job}-in", number) for number in range(PARTITIONS)]
        group = {each.partition: each.offset for each in consumer.committed(asked, timeout=60)}
        ends = ends_of(consumer, job)
    finally:
        consumer.close()
    with ControlClient(servers, {}) as client:
        await_markers(client, 60.0)
        listed = client.list_transactions()
    mine = {name: state for name, state in listed.items() if name.startswith(job)}
    return Real(group, ends, tree(checkpoints), mine)


def ends_of(consumer: Consumer, job: str) -> dict[int, tuple[int, int]]:
    outputs = [TopicPartition(f"{job}-out", number) for number in range(PARTITIONS)]
    return {each.partition: consumer.get_watermark_offsets(each, timeout=60) for each in outputs}


def await_still(servers: str, job: str) -> None:
    """Wait until the broker has written what processes that are gone have sent it."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": job, "isolation.level": "read_uncommitted"})
    try:
        looks = [ends_of(consumer, job)]
        while len(looks) < 2 or looks[-1] != looks[-2]:
            time.sleep(0.5)
            looks.append(ends_of(consumer, job))
    finally:
        consumer.close()


def damaged_copy(checkpoints: Path, into: Path, job: str) -> Path:
    shutil.copytree(checkpoints, into)
    sst = stored_path(into / job, f"chk-{STRUCK}/subtask-0/*.sst")
    flip_bit(sst)
    return into


def delete_first_records(servers: str, topic: str) -> None:
    """As retention does it."""
    asked = [TopicPartition(topic, 0, RECORDS // PARTITIONS - 10)]
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.delete_records(asked).values():
        done.result(60)


def count_open(servers: str, checkpoints: Path, job: str) -> int:
    return settle_newest(servers, checkpoints, job, SettleAction.HOLD).count(Outcome.HELD)


def abort_pending(servers: str, checkpoints: Path, job: str) -> None:
    """As the broker does to a transaction whose time is up."""
    settle_newest(servers, checkpoints, job, SettleAction.ABORT)


def settle_newest(servers: str, checkpoints: Path, job: str, act: SettleAction) -> list[Outcome]:
    metadata = read_job(LocalStore(checkpoints), job).completed[-1].metadata
    assert metadata is not None
    with ControlClient(servers, {}) as client:
        found = [settle(client, each, confirmed=False, budget_seconds=60.0, act=act) for each in metadata.committables]
    return [settled.outcome for settled in found]


def test_a_checkpoint_that_can_be_restored_holds(drilled: Drilled) -> None:
    assert drilled.whole.code == 0, drilled.whole.out + drilled.whole.err
    assert {each["name"]: each["verdict"] for each in drilled.result["checks"]} == dict.fromkeys(
        ("readable", "positions", "transactions", "replay", "output"), "held"
    )


def test_the_replay_reads_to_the_end_of_the_input(drilled: Drilled) -> None:
    figures = drilled.result["figures"]
    assert 0 < figures["records replayed"] == figures["records to replay"] < RECORDS
    assert figures["restored after, s"] <= figures["caught up after (RTO), s"]


def test_what_the_job_wrote_is_compared_as_far_as_it_can_be_seen(drilled: Drilled) -> None:
    assert 0 < drilled.result["figures"]["records compared"] < drilled.result["figures"]["records replayed"]


def test_a_pending_transaction_is_told_and_not_committed(drilled: Drilled) -> None:
    said = {each["name"]: each["text"] for each in drilled.result["checks"]}
    assert drilled.pending > 0
    assert f"{drilled.pending} would commit" in said["transactions"]
    assert BrokerState.ONGOING in drilled.after.transactions.values()


def test_group_output_transactions_and_checkpoints_of_the_real_job_are_as_they_were(drilled: Drilled) -> None:
    assert drilled.after == drilled.before


def test_nothing_is_left_behind(drilled: Drilled) -> None:
    assert drilled.left_behind == []


def test_a_damaged_checkpoint_breaks_the_drill_and_is_named(drilled: Drilled) -> None:
    found = check(drilled.damaged, "readable")
    assert (drilled.damaged.exit_code, found.verdict) == (1, CheckVerdict.BROKEN)
    assert re.search(r"files/\d+-0-[0-9a-f]+-\d+\.sst is damaged", found.findings[0])


def test_a_damaged_checkpoint_is_not_replayed(drilled: Drilled) -> None:
    assert check(drilled.damaged, "replay").verdict is CheckVerdict.NOT_JUDGED


def test_a_position_that_retention_has_deleted_breaks_the_drill_and_is_named(drilled: Drilled) -> None:
    found = check(drilled.out_of_retention, "positions")
    assert (drilled.out_of_retention.exit_code, found.verdict) == (1, CheckVerdict.BROKEN)
    assert [finding.partition(":")[0] for finding in found.findings] == ["out of retention"]


def test_a_pending_transaction_that_the_broker_has_aborted_is_named_with_what_becomes_of_its_output(
    drilled: Drilled,
) -> None:
    found = check(drilled.aborted, "transactions")
    assert f"{drilled.pending} lost, would be written again" in found.text
    assert re.search(r"@5: lost, would be written again: .*CompleteAbort.*from checkpoint \d", found.findings[0])


def test_the_reports_are_written(drilled: Drilled) -> None:
    assert "attempt 2 started" in drilled.whole.out
    assert 'tests="5" failures="0"' in (drilled.folder / "drill.xml").read_text()
