"""Output that the broker expired, and that nothing writes again: the next start refuses, until a person gives it up."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from tests.kafka.kit import eventually
from twopc.checkpoints.catalog import read_job
from twopc.config import RunSettings
from twopc.driver.host import Told
from twopc.driver.run import run
from twopc.errors import TransactionLost, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.transactional import TransactionalWriter
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import Committable
from twopc.protocol.messages import Complete
from twopc.runtime.spec import SubtaskSpec
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic
from twopc.worker.bootstrap import run_subtask

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource


def count(total, value):
    return (total or 0) + 1, b"%d" % ((total or 0) + 1)


job = Job("{name}")
counts = job.source(KafkaSource(["{name}-a", "{name}-b"])).stateful_map(count, name="count")
counts.sink(KafkaSink("{name}-out", partitioner="source"))
"""


class ThreadStage:
    def __init__(self, subtasks: Sequence[Future[None]]) -> None:
        self._subtasks = subtasks

    def wait(self, timeout: float) -> bool:
        return bool(wait(self._subtasks, timeout, FIRST_COMPLETED).done)

    def drain(self, timeout: float) -> None:
        wait(self._subtasks, timeout)

    def error(self) -> TwoPhaseCommitError | None:
        ended = [str(each.exception()) for each in self._subtasks if each.done() and each.exception() is not None]
        return Unavailable(ended[0]) if ended else None

    def told_why(self) -> Told:
        return Told.PERHAPS if self.error() is None else Told.YES

    def shortage(self) -> str | None:
        return None

    def kill(self) -> None:
        wait(self._subtasks)


class ThreadHost:
    """Runs subtasks in this process, where a test can reach into them."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor()

    def notice(self) -> str | None:
        return None

    def refusal(self, parallelism: int) -> str | None:
        return None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> ThreadStage:
        return ThreadStage([self._pool.submit(run_subtask, lambda: definition, spec) for spec in specs])

    def close(self) -> None:
        self._pool.shutdown()


def lose_the_last_checkpoint(
    broker: Broker, job_file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, parallelism: int = 1
) -> None:
    """Run until a checkpoint has completed, whose transaction subtask 0 never commits, and wait until it has expired.

    If there is a subtask 1, it has committed its own.
    """
    commit, committed = TransactionalWriter.commit, threading.Event()

    def never(writer: TransactionalWriter, item: Committable, proof: Complete) -> None:
        if item.subtask:
            commit(writer, item, proof)
            committed.set()
            return
        assert parallelism == 1 or committed.wait(60)
        raise Unavailable("nobody commits")

    settings = RunSettings(
        bootstrap_servers=broker.bootstrap_servers,
        checkpoint_dir=str(folder),
        checkpoint_interval_ms=600_000,
        transaction_timeout_ms=10_000,
        restart_strategy="none",
        restart_attempts=0,
        host="process",
        until_end=True,
        parallelism=parallelism,
    )
    definition = load_job(str(job_file))
    with monkeypatch.context() as patched:
        patched.setattr(TransactionalWriter, "commit", never)
        # The driver would commit it when it gives up.
        patched.setattr("twopc.driver.machine.leave_nothing_open", lambda *_: iter(()))
        # So short a time-out, and so long an interval that the only checkpoint is the last, would be refused.
        patched.setattr(
            "twopc.kafka.topics.preflight.checked_timeout_ms", lambda given, _: given.transaction_timeout_ms
        )
        with pytest.raises(Unavailable, match="nobody commits"):
            run(definition, settings, host=ThreadHost())
    completed = read_job(LocalStore(folder), definition.name).completed[-1]
    assert completed.metadata is not None
    [committable] = [item for item in completed.metadata.committables if item.subtask == 0]
    name = PreparedTransaction.from_committable(committable).transactional_id
    with ControlClient(broker.bootstrap_servers, {}) as client:

        def expired() -> bool:
            found = client.describe_transaction(name)
            return found is not None and found.described.state is BrokerState.COMPLETE_ABORT

        eventually(expired)


def test_a_loss_of_one_of_two_subtasks_is_refused_until_it_is_accepted_and_all_states_and_other_output_are_kept(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder, job_file = topic(), tmp_path / "checkpoints", tmp_path / "job.py"
    servers = broker.bootstrap_servers
    for suffix in ("a", "b", "out"):
        create_topic(servers, f"{name}-{suffix}", 2)
    job_file.write_text(JOB.format(name=name))

    def fill(count: int) -> None:
        for suffix in ("a", "b"):
            produce(servers, f"{name}-{suffix}", [Write(b"x", b"k%d" % each, each) for each in (0, 1)] * count)

    def written() -> dict[bytes | None, list[int]]:
        every = read_topic(servers, f"{name}-out")
        return {key: [int(each.value or b"") for each in every if each.key == key] for key in (b"k0", b"k1")}

    fill(7)
    lose_the_last_checkpoint(broker, job_file, folder, monkeypatch, parallelism=2)
    fill(3)

    def start(*more: str) -> CommandResult:
        return twopc(
            *("run", str(job_file), "--bootstrap-servers", servers, "--checkpoint-dir", str(folder)),
            *("--host", "process", "-p", "2", "--until-end", "--output", "json", *more),
        )

    refused = start()
    assert refused.code == TransactionLost.exit_code, refused.err
    assert f"up to {name}-a[0]@7, up to {name}-b[0]@7" in refused.err
    assert f"{name}-a[1]" not in refused.err
    assert "there is no earlier checkpoint: --from none begins anew" in refused.err
    assert start("--accept-loss", "another").code == TransactionLost.exit_code
    assert written() == {b"k0": [], b"k1": list(range(1, 15))}
    [lost] = re.findall(r"--accept-loss (\S+)\. ", refused.err)

    accepted = start("--accept-loss", lost)
    assert accepted.code == 0, accepted.err
    assert json.loads(accepted.out)["records_in"] == 12
    assert written() == {b"k0": list(range(15, 21)), b"k1": list(range(1, 21))}
    said = [loss for entry in read_job(LocalStore(folder), name).completed for loss in entry.losses]
    assert [loss.names for loss in said] == [(lost,)]
