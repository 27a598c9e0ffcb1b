"""Output that the broker expired, and that nothing writes again: the next start refuses, until a person gives it up."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from tests.kafka.kit import eventually, values_of
from twopc.checkpoints.catalog import read_job
from twopc.config import RunSettings
from twopc.driver.run import run
from twopc.errors import TransactionLost, TwoPhaseCommitError, Unavailable
from twopc.graph import JobDefinition
from twopc.kafka.committable import PreparedTransaction
from twopc.kafka.control_client import ControlClient
from twopc.kafka.transaction_verdict import BrokerState
from twopc.kafka.transactional import TransactionalWriter
from twopc.loader.job_loader import load_job
from twopc.runtime.spec import SubtaskSpec
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce
from twopc.worker.bootstrap import run_subtask

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource("{name}-in")).map(bytes.upper).sink(KafkaSink("{name}-out"))
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

    def has_said_why(self) -> bool:
        return self.error() is not None

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


def lose_the_last_checkpoint(broker: Broker, job_file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run until a checkpoint has completed whose transaction is never committed, and wait until that has expired."""

    def never(*_: object) -> None:
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
    )
    definition = load_job(str(job_file))
    with monkeypatch.context() as patched:
        patched.setattr(TransactionalWriter, "commit", never)
        # The driver would commit it when it gives up.
        patched.setattr("twopc.driver.machine.leave_nothing_open", lambda *_: iter(()))
        # So short a time-out, and so long an interval that the only checkpoint is the last, would be refused.
        patched.setattr("twopc.kafka.preflight.checked_timeout_ms", lambda given, _: given.transaction_timeout_ms)
        with pytest.raises(Unavailable, match="nobody commits"):
            run(definition, settings, host=ThreadHost())
    completed = read_job(LocalStore(folder), definition.name).completed[-1]
    assert completed.metadata is not None
    [committable] = completed.metadata.committables
    name = PreparedTransaction.from_committable(committable).transactional_id
    with ControlClient(broker.bootstrap_servers, {}) as client:

        def expired() -> bool:
            found = client.describe_transaction(name)
            return found is not None and found.described.state is BrokerState.COMPLETE_ABORT

        eventually(expired)


def test_an_expired_loss_is_refused_with_its_offsets_until_it_is_accepted_by_name(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder, job_file = topic(), tmp_path / "checkpoints", tmp_path / "job.py"
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}")
    job_file.write_text(JOB.format(name=name))
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b"lost")] * 7)
    lose_the_last_checkpoint(broker, job_file, folder, monkeypatch)
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b"kept")] * 3)

    def start(*more: str) -> CommandResult:
        return twopc(
            *("run", str(job_file), "--bootstrap-servers", broker.bootstrap_servers, "--checkpoint-dir", str(folder)),
            *("--host", "process", "--until-end", "--output", "json", *more),
        )

    refused = start()
    assert refused.code == TransactionLost.exit_code, refused.err
    assert f"up to {name}-in[0]@7" in refused.err
    assert start("--accept-loss", "another").code == TransactionLost.exit_code
    assert values_of(broker.bootstrap_servers, f"{name}-out") == []
    [lost] = re.findall(r"--accept-loss (\S+)\. ", refused.err)

    accepted = start("--accept-loss", lost)
    assert accepted.code == 0, accepted.err
    assert json.loads(accepted.out)["records_in"] == 3
    assert values_of(broker.bootstrap_servers, f"{name}-out") == [b"KEPT"] * 3
    said = [loss for entry in read_job(LocalStore(folder), name).completed for loss in entry.losses]
    assert [loss.names for loss in said] == [(lost,)]
