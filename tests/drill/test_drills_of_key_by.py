"""Restore, version and fault drill of a job with key_by, a count and windows behind it; and its verification."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drill.drilled import checks, drilled_with_faults, not_held, scratch_on
from tests.jobs.cli import CommandResult, twopc
from twopc.checkpoints.catalog import CheckpointEntry, read_job
from twopc.config import RunSettings
from twopc.drill.job import DrillJob
from twopc.drill.own_topics import ends_of_records
from twopc.kafka.clients.topic_client import TopicClient
from twopc.kafka.input.topic_reader import high_watermarks, read
from twopc.kafka.positions.partition_position import offsets_of
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.loader.job_loader import load_job
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = [pytest.mark.broker, pytest.mark.proof, pytest.mark.xdist_group("drills of key_by")]

JOB_FILE = str(Path(__file__).with_name("rekeyed_job.py"))
RECORDS = 400
"""Of each topic."""


class Real:
    """A real job that has run to its end, and its first checkpoint that had written to its topic and not read all."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.servers, self.name = broker.bootstrap_servers, f"rekeyed-{uuid.uuid4().hex[:6]}"
        self.own = f"{self.name}-by-id-repartition"
        self.cut = TopicPartition(self.own, 0)
        for suffix, partitions in {"web": 3, "app": 2, "counts": 2, "windows": 1, "copies": 3}.items():
            create_topic(self.servers, f"{self.name}-{suffix}", partitions)
        self.common = (
            *(JOB_FILE, "-b", self.servers, "--host", "process", "-p", "2"),
            *("--checkpoint-dir", str(folder / "checkpoints"), "--checkpoint-interval", "200ms"),
        )
        for first in (0, RECORDS // 2):
            for source in ("web", "app"):
                records = (Write(b'{"n": %d}' % n, key=b"%d" % n) for n in range(first, first + RECORDS // 2))
                produce(self.servers, f"{self.name}-{source}", records)
            ran = twopc("run", *self.common, "--until-end", "--checkpoints-retained", "50", DRILLED_JOB=self.name)
            assert ran.code == 0, ran.err
        kept = read_job(LocalStore(folder / "checkpoints"), self.name).completed
        self.chosen = next(str(each.checkpoint_id) for each in kept if self.has_unread(each))

    def has_unread(self, entry: CheckpointEntry) -> bool:
        """Whether it has read input, and nothing of what it made of that for itself."""
        assert entry.metadata is not None
        read = offsets_of(entry.metadata.positions).items()
        own = sum(offset for each, offset in read if each.topic == self.own)
        return not own and any(offset for each, offset in read if each.topic != self.own)

    def drill(self, *more: str) -> CommandResult:
        return twopc("drill", *self.common, "--from", self.chosen, "-o", "json", *more, DRILLED_JOB=self.name)

    def verify(self) -> CommandResult:
        return twopc("verify", "--map", JOB_FILE, "-b", self.servers, "-o", "json", DRILLED_JOB=self.name)


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of the job as it is, of a record too many in its output, and of a topic of its own cut short."""

    real: Real
    verified: CommandResult
    drilled: CommandResult
    alike: CommandResult
    unlike: CommandResult
    doubled: CommandResult
    verified_cut: CommandResult
    drilled_cut: CommandResult
    left_behind: list[str]


@pytest.fixture(scope="module")
def told(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("rekeyed")
    real = Real(broker, folder)
    other = folder / "other_rekeyed_job.py"
    other.write_text(Path(JOB_FILE).read_text().replace("total = (total or 0) + 1", "total = (total or 0) + 2"))
    verified, drilled = real.verify(), real.drill()
    alike, unlike = real.drill("--against", JOB_FILE), real.drill("--against", str(other))
    produce(real.servers, f"{real.name}-counts", [Write(b"[1,1]", key=b"id-1")])
    doubled = real.drill("--no-interrupt")
    with TopicClient(real.servers, {}) as client:
        client.delete_records({real.cut: Position(1)})
    cut = real.verify(), real.drill("--no-interrupt")
    return Told(real, verified, drilled, alike, unlike, doubled, *cut, scratch_on(real.servers))


def test_all_is_verified_in_the_order_that_the_jobs_own_topic_has(told: Told) -> None:
    assert told.verified.code == 0, told.verified.out + told.verified.err
    found = json.loads(told.verified.out)
    matched = {each["topic"].removeprefix(told.real.name): each["matched"] for each in found["topics"]}
    assert matched.pop("-windows") > 0
    assert matched == {"-by-id-repartition": 2 * RECORDS, "-counts": 2 * RECORDS, "-copies": RECORDS}
    assert found["left_out"] == []


@pytest.mark.proof
def test_behind_a_key_by_all_is_replayed_through_a_kill_and_nothing_is_left_behind(told: Told) -> None:
    held = checks(told.drilled)
    assert {each["verdict"] for each in held.values()} == {"held"}, told.drilled.out
    written = int(held["replay"]["text"].split(" written")[0].split()[-1].replace(",", ""))
    # What the checkpoint had written and not read is counted in the scratch run too.
    assert written > RECORDS + 2 * RECORDS
    assert json.loads(told.drilled.out)["figures"]["records compared"] > RECORDS + 2 * RECORDS
    assert told.left_behind == []


@pytest.mark.proof
def test_a_record_too_many_behind_a_key_by_is_found(told: Told) -> None:
    assert checks(told.doubled)["output"]["verdict"] == "broken", told.doubled.out


def test_two_versions_are_compared_behind_a_key_by(told: Told) -> None:
    assert checks(told.alike)["output"]["verdict"] == "held"
    output = checks(told.unlike)["output"]
    assert output["verdict"] == "broken"
    assert all(f"to {told.real.name}-counts" in finding for finding in output["findings"])


@pytest.mark.proof
def test_what_a_job_has_deleted_of_its_own_topic_is_named_with_all_that_is_made_of_it(told: Told) -> None:
    found = json.loads(told.verified_cut.out)
    assert [each["topic"] for each in found["topics"]] == [f"{told.real.name}-copies"]
    assert any(f"{told.real.cut} up to offset 1" in said for said in found["left_out"])
    assert any(f"topic '{told.real.name}-windows' is not judged" in said for said in found["left_out"])


def test_a_checkpoint_that_would_read_what_the_job_has_deleted_is_out_of_retention(told: Told) -> None:
    positions = checks(told.drilled_cut)["positions"]
    assert positions["verdict"] == "broken"
    assert any("out of retention" in each and str(told.real.cut) in each for each in positions["findings"])


def test_a_topic_of_its_own_ends_where_no_record_follows_though_a_transactions_marker_does(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRILLED_JOB", told.real.name)
    monkeypatch.setattr("twopc.loader.job_loader._folders", set())
    job = DrillJob.of(load_job(JOB_FILE), RunSettings(bootstrap_servers=told.real.servers), {})
    cluster = job.inputs["by-id-source"]
    ends = high_watermarks(cluster, [told.real.cut])
    read_from = {told.real.cut: (Position(1), ends[told.real.cut])}
    last = max(row.offset() or 0 for batch in read(cluster, read_from) for row in batch.rows)
    behind = {told.real.cut: Position(last + 1)}
    assert behind[told.real.cut] < ends[told.real.cut]
    assert ends_of_records(job, behind, ends) == behind
    assert ends_of_records(job, {told.real.cut: Position(last)}, ends) == ends


@pytest.mark.proof
def test_a_job_with_key_by_lives_through_faults_and_all_behind_it_is_judged(broker: Broker, tmp_path: Path) -> None:
    result = drilled_with_faults(broker.bootstrap_servers, JOB_FILE, 2, 1_500, tmp_path)
    assert not not_held(result), not_held(result)
    [output] = [check for check in result.checks if check.name == "output"]
    # Written for itself, counted behind that, and the copies of the one half.
    assert int(output.text.split()[0].replace(",", "")) > 1_500 + 1_500 + 750
    assert (scratch_on(broker.bootstrap_servers), list(tmp_path.iterdir())) == ([], [])
