"""Every tool that reads, checks, copies or deletes checkpoints does so on a store that is no folder, by its URL."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from coordinator.server import CoordinatorServer
from tests.inspect.kit import LEFT, RIGHT, JobWithState
from tests.storage.faulty_store import Failure, FaultyStore, Strike
from tests.storage.memory_bucket import MemoryBucket
from tests.stored_job import JOB
from twopc.checkpoints.catalog import latest_attempt, read_job
from twopc.checkpoints.copy import copy_checkpoint
from twopc.checkpoints.files import examine
from twopc.checkpoints.reference import locate
from twopc.cli import app
from twopc.config import RunSettings
from twopc.drill.checkpoint_copy import copy_restorable
from twopc.driver.start import checkpoint_to_restore
from twopc.errors import CheckpointCorrupted, ConfigurationError, Unavailable
from twopc.inspect import open_checkpoint
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import stored_file
from twopc.rpc.admin_client import AdminClient
from twopc.state.shared_folder import require_shared
from twopc.storage.local import LocalStore
from twopc.storage.memory import MemoryStore
from twopc.storage.object_store import ObjectStore
from twopc.storage.open import OPENERS, open_store
from twopc.storage.store import CheckpointStore, jobs_in


@dataclass(frozen=True)
class Site:
    """A job of three checkpoints, the second of them a savepoint; `beside` names another store of the same kind."""

    url: str
    beside: Callable[[str], str]

    @property
    def store(self) -> CheckpointStore:
        return open_store(self.url)

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--checkpoint-dir", self.url])

    def ask(self, *arguments: str) -> Any:
        result = self.run(*arguments, "-o", "json")
        assert result.exit_code == 0, (result.output, result.exception)
        return json.loads(result.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    job = JobWithState(tmp_path_factory.mktemp("made") / "checkpoints")
    job.put(LEFT, "LGA", b"1")
    job.put(RIGHT, "LGA", b"2")
    job.checkpoint()
    job.put(LEFT, "LGA", b"3")
    job.checkpoint(CheckpointKind.SAVEPOINT, "before-1.2")
    job.checkpoint()
    job.end()
    return job.root


@pytest.fixture(params=["memory", "file", "bucket", "hdfs"])
def site(made: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("TWOPC_STATE_DIR", str(tmp_path / "announced"))
    urls: dict[str, Callable[[str], str]] = {
        "memory": "memory://{}".format,
        "file": f"file://{tmp_path}/{{}}".format,
        "bucket": "s3://memory/{}".format,
        "hdfs": "hdfs://namenode:8020/{}".format,
    }
    data: dict[str, bytes] = {}
    bucket = MemoryBucket()
    monkeypatch.setitem(OPENERS, "s3", lambda rest: ObjectStore(bucket, f"{rest.removeprefix('//memory/')}/"))
    monkeypatch.setitem(OPENERS, "memory", lambda rest: MemoryStore(data, f"{rest.strip('/')}/"))
    if request.param == "hdfs":
        monkeypatch.setitem(OPENERS, "hdfs", hdfs_in_memory())
    url = urls[request.param]("checkpoints")
    original, job = LocalStore(made), open_store(url).within(JOB)
    job.establish()
    for name in original.within(JOB).names():
        job.create_once(name, original.within(JOB).get(name))
    return Site(url, urls[request.param])


def hdfs_in_memory() -> Callable[[str], CheckpointStore]:
    pytest.importorskip("hdfs_native", reason="HDFS needs the extra twopc-streams[hdfs]")
    from tests.storage.memory_hdfs import MemoryHdfs
    from twopc.storage.hdfs_store import HdfsStore

    hdfs = MemoryHdfs()
    return lambda rest: HdfsStore(hdfs, rest.removeprefix("//namenode:8020").rstrip("/"))


def test_the_checkpoints_are_listed_and_shown(site: Site) -> None:
    listed = site.ask("checkpoints", "list")
    assert [(each["checkpoint_id"], each["label"]) for each in listed] == [(1, ""), (2, "before-1.2"), (3, "")]
    shown = site.ask("checkpoints", "show", "before-1.2", "--states")
    assert (shown["checkpoint_id"], shown["place"]) == (2, site.store.within(JOB).place("chk-2"))
    assert [(each["state"], each["keys"]) for each in shown["states"]] == [("count", 2)]


def test_a_damaged_file_is_named_by_every_command(site: Site) -> None:
    (examined,) = site.ask("checkpoints", "verify")
    assert (examined["checkpoints"], examined["findings"]) == ([1, 2, 3], [])
    job = site.store.within(JOB)
    damaged = next(name for name in job.names("files/3-1-") if name.endswith(".sst"))
    job.put([(damaged, b"?" + job.get(damaged)[1:])])
    for command in (["checkpoints", "verify"], ["state", "list"], ["checkpoints", "show", "latest", "--states"]):
        result = site.run(*command)
        assert isinstance(result.exception, CheckpointCorrupted), result.output
        assert f"{JOB}/{damaged} is damaged: its SHA-256" in str(result.exception)


def test_what_is_missing_of_ledger_metadata_and_snapshots_is_named(site: Site) -> None:
    job = site.store.within(JOB)
    job.delete(["chk-2/metadata.json", "chk-3/subtask-0.json"])
    assert [finding.file for finding in examine(site.store, JOB).findings] == [
        f"{JOB}/chk-2/metadata.json",
        f"{JOB}/chk-3/subtask-0.json",
    ]
    job.delete(job.names("ledger/")[-1:])
    assert isinstance(site.run("checkpoints", "verify").exception, CheckpointCorrupted | ConfigurationError)


@pytest.mark.parametrize("target", ["store", "archive"])
def test_a_copy_is_made_of_it_and_a_run_goes_on_from_that_in_another_store(
    site: Site, target: str, tmp_path: Path
) -> None:
    copy = site.beside("copy") if target == "store" else str(tmp_path / "copy.tar")
    site.ask("checkpoints", "copy", "before-1.2", copy)
    again = site.run("checkpoints", "copy", "2", copy)
    assert "is there already" in str(again.exception)
    elsewhere = RunSettings(checkpoint_dir=site.beside("elsewhere"), restore_from=copy)
    assert checkpoint_to_restore(elsewhere, JOB) == "2"
    assert checkpoint_to_restore(elsewhere, JOB) == "2"
    brought = open_store(elsewhere.checkpoint_dir)
    assert [entry.label for entry in read_job(brought, JOB).completed] == ["before-1.2"]
    assert examine(brought, JOB).findings == []


def test_a_copy_that_was_interrupted_is_no_job_and_the_same_copy_again_completes_it(site: Site) -> None:
    located, half = locate("2", site.store), open_store(site.beside("copy")).within(JOB)
    half.establish()
    name = next(iter(site.store.within(JOB).names("files/2-0-")))
    half.put([(name, b"half")])
    assert jobs_in(open_store(site.beside("copy"))) == []
    site.ask("checkpoints", "copy", str(located.checkpoint_id), site.beside("copy"))
    assert examine(open_store(site.beside("copy")), JOB).findings == []


@pytest.mark.parametrize("failure", Failure, ids=lambda failure: str(failure.value))
def test_wherever_the_target_of_a_copy_fails_there_is_a_whole_copy_or_no_job_and_again_completes_it(
    site: Site, failure: Failure
) -> None:
    located = locate("2", site.store)
    whole = Strike(failure, 0)
    copy_checkpoint(located, FaultyStore(open_store(site.beside("whole")), whole))
    for at in range(1, whole.calls + 1):
        target = open_store(site.beside(f"copy-{at}"))
        with pytest.raises(Unavailable, match="simulated"):
            copy_checkpoint(located, FaultyStore(target, Strike(failure, at)))
        if jobs_in(target):
            assert (failure, at) == (Failure.ANSWER_LOST, whole.calls)
        else:
            copy_checkpoint(located, target)
        assert examine(target, JOB).findings == []


def test_a_copy_replaces_nothing_that_is_another_checkpoints(site: Site) -> None:
    there = open_store(site.beside("copy")).within(JOB)
    there.establish()
    there.create_once("chk-9/metadata.json", b"another's")
    assert "is there already" in str(site.run("checkpoints", "copy", "2", site.beside("copy")).exception)
    assert there.names() == ["chk-9/metadata.json"]


def test_a_checkpoint_elsewhere_is_named_by_where_it_is(site: Site) -> None:
    nowhere = open_store(site.beside("nowhere"))
    for reference, number in ((f"{site.url}/{JOB}/chk-1", 1), (f"{site.url}/{JOB}", 3), (site.url, 3)):
        assert locate(reference, nowhere, JOB).checkpoint_id == number
    with pytest.raises(ConfigurationError, match="there is no checkpoint"):
        locate(f"{site.url}/{JOB}/chk-9", nowhere)


def test_a_savepoint_of_a_job_at_rest_is_disposed_of(site: Site) -> None:
    assert site.ask("checkpoints", "dispose", "before-1.2")["disposed"] == 2
    assert [entry.checkpoint_id for entry in read_job(site.store, JOB).completed] == [1, 3]
    assert examine(site.store, JOB).findings == []
    assert not site.store.within(JOB).names("files/2-")


def test_what_crashes_left_is_told_of_and_goes_with_the_next_pruning(site: Site) -> None:
    job = site.store.within(JOB)
    left, coming = stored_file(CheckpointId(2), SubtaskIndex(0), "dead", "9.sst"), "files/4-0-beef-000009.sst"
    job.put([(left, b"half"), (coming, b"of an upload that may go on")])
    (examined,) = site.ask("checkpoints", "verify")
    assert (examined["findings"], examined["left_over"]) == ([], [f"{JOB}/{left}"])
    site.ask("checkpoints", "dispose", "before-1.2")
    (examined,) = site.ask("checkpoints", "verify")
    assert (examined["findings"], examined["left_over"]) == ([], [])
    assert (left in job.names(), coming in job.names()) == (False, True)


@pytest.mark.parametrize("site", ["bucket", "hdfs"], indirect=True)
def test_what_a_killed_start_tried_the_store_with_is_told_of_and_goes_when_one_starts(site: Site) -> None:
    day, now = 86_400, int(time.time())
    killed = [f".twopc-probe-{now - day - 60}-beef", ".twopc-probe-0123456789abcdef"]
    in_use = f".twopc-probe-{now - day + 3_600}-dead"
    for name in (*killed, in_use):
        site.store.put([(name, b"first")])
    (examined,) = site.ask("checkpoints", "verify")
    assert (examined["findings"], sorted(examined["left_over"])) == ([], sorted(killed))
    site.store.prepare()
    (examined,) = site.ask("checkpoints", "verify")
    assert examined["left_over"] == []
    assert site.store.get(in_use) == b"first"


def test_state_is_read_exported_and_compared(site: Site, tmp_path: Path) -> None:
    with open_checkpoint("before-1.2", checkpoint_dir=site.url, job=JOB) as checkpoint:
        assert [each.value for each in checkpoint.state("count").find("LGA")] == [3, 2]
    assert site.ask("state", "export", "latest", "--to", str(tmp_path / "state.jsonl"))["rows"] == 2
    assert (site.run("state", "diff", "1", "2").exit_code, site.run("state", "diff", "2", "3").exit_code) == (1, 0)


def test_a_drill_gets_a_copy_and_the_names_of_what_is_damaged(site: Site) -> None:
    metadata, damages = copy_restorable(locate("2", site.store), open_store(site.beside("drilled")))
    assert (metadata.checkpoint_id, damages) == (2, [])
    assert examine(open_store(site.beside("drilled")), JOB).findings == []
    job = site.store.within(JOB)
    damaged = next(name for name in job.names("files/2-0-") if "MANIFEST" in name)
    job.put([(damaged, b"")])
    _, (damage,) = copy_restorable(locate("2", site.store), open_store(site.beside("damaged")))
    assert damage.startswith(f"{JOB}/{damaged} is truncated")
    assert open_store(site.beside("damaged")).within(JOB).names() == []


def test_a_coordinator_serves_the_jobs_that_are_stored_there(site: Site) -> None:
    server = CoordinatorServer(site.store)
    address = server.start()
    try:
        with AdminClient(address) as client:
            (summary,) = client.jobs()
    finally:
        server.stop()
    assert summary.job == JOB


def test_a_subtask_sees_the_record_of_its_attempt(site: Site) -> None:
    require_shared(site.store, JOB, AttemptId(1))
    assert latest_attempt(site.store, JOB) == 1
    assert latest_attempt(site.store, "other") is None


def test_a_store_of_the_same_bytes_is_the_same_wherever_it_is_opened(site: Site) -> None:
    assert open_store(site.store.identity).identity == site.store.identity
    assert open_store(site.store.within(JOB).identity).names() == site.store.within(JOB).names()
    assert locate(str(CheckpointId(1)), site.store).root.identity == site.store.identity
