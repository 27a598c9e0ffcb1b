"""What a person and a script see of a checkpoint folder."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from coordinator.ledger import Ledger
from tests.stored_job import JOB, SmallJob, StoredJob, stored_path
from twopc.cli.checkpoints import app
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.kafka.positions import offset_status
from twopc.kafka.positions.offset_status import OffsetStatus, Readability
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import encode_fact
from twopc.protocol.facts import CheckpointMetadata, Committable, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import manifest_path
from twopc.protocol.ledger_facts import METADATA_KIND, CheckpointCompleted, CheckpointReserved, CommittablesConfirmed
from twopc.protocol.manifest import Manifest
from twopc.storage.local import LocalStore

TRIGGERED_MS = 1_700_000_000_000
MANIFEST = Manifest.of([], 0).encode()


def snapshot(subtask: int, checkpoint: int) -> SubtaskSnapshot:
    index, number = SubtaskIndex(subtask), CheckpointId(checkpoint)
    return SubtaskSnapshot.of(
        subtask=index,
        positions=(SplitPosition(f"in[{subtask}]", subtask, [100 * checkpoint + subtask, "topic-id"]),),
        state=StateHandle(f"chk-{checkpoint}/subtask-{subtask}", sha256(MANIFEST).hexdigest(), 2_048, 10),
        committables=(Committable(f"txn-{subtask}-{checkpoint}", number, index, {"producer_id": 7}),),
    )


def store(root: Path, job: str, checkpoints: range) -> None:
    """Write what a coordinator writes: all but the last checkpoint's transactions are confirmed."""
    ledger = Ledger(job, LocalStore(root / job))
    attempt = AttemptId(1)
    ledger.store(AttemptStarted(attempt, 2, CheckpointSettings(1_000, 60_000), CheckpointId(0), TRIGGERED_MS))
    for number in map(CheckpointId, checkpoints):
        snapshots = (snapshot(0, number), snapshot(1, number))
        metadata = CheckpointMetadata(
            job, number, attempt, 2, CheckpointKind.PERIODIC, TRIGGERED_MS, TRIGGERED_MS + 250, snapshots
        )
        names = tuple(tuple(committable.name for committable in each.committables) for each in snapshots)
        digest = sha256(encode_fact(METADATA_KIND, to_json(metadata))).hexdigest()
        ledger.store(CheckpointReserved(number, attempt, CheckpointKind.PERIODIC))
        for each in snapshots:
            manifest = root / job / manifest_path(number, each.subtask)
            manifest.parent.mkdir(parents=True, exist_ok=True)
            manifest.write_bytes(MANIFEST)
        ledger.store(metadata)
        ledger.store(CheckpointCompleted(number, attempt, CheckpointKind.PERIODIC, digest, names))
        if number != checkpoints[-1]:
            ledger.store(CommittablesConfirmed(number, tuple(name for each in names for name in each)))
    ledger.store(CommittablesConfirmed(CheckpointId(checkpoints[-1]), (f"txn-0-{checkpoints[-1]}",)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store(tmp_path / "checkpoints", "flights", range(1, 4))
    return tmp_path / "checkpoints"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: str | Path) -> Any:
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def error(expected: type[Exception], *arguments: str | Path) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, expected), result.output
    return str(result.exception)


def test_list_shows_every_completed_checkpoint_oldest_first(root: Path) -> None:
    listed = answer("list", "--checkpoint-dir", root)
    assert [(each["job"], each["checkpoint_id"], each["outstanding"]) for each in listed] == [
        ("flights", 1, 0),
        ("flights", 2, 0),
        ("flights", 3, 1),
    ]


def test_list_says_when_how_long_and_how_much(root: Path) -> None:
    newest = answer("list", "--checkpoint-dir", root)[-1]
    fields = ("kind", "acknowledged_ms", "duration_ms", "size_bytes", "parallelism", "committables", "damage")
    assert [newest[field] for field in fields] == ["periodic", TRIGGERED_MS + 250, 250, 4_096, 2, 2, None]


def test_list_shows_all_jobs_or_the_one_that_is_named(root: Path) -> None:
    store(root, "other", range(1, 2))
    assert {each["job"] for each in answer("list", "--checkpoint-dir", root)} == {"flights", "other"}
    assert {each["job"] for each in answer("list", "--checkpoint-dir", root, "--job", "other")} == {"other"}


def test_list_as_a_table_has_a_line_per_checkpoint(root: Path) -> None:
    result = run("list", "--checkpoint-dir", root)
    assert result.exit_code == 0
    line = next(line for line in result.stdout.splitlines() if "flights" in line and " 3 " in line)
    for shown in ("periodic", "250 ms", "4.0 KiB", "1 of 2 outstanding"):
        assert shown in line


def test_list_of_a_folder_without_jobs_says_so(tmp_path: Path) -> None:
    (tmp_path / "no-job").mkdir()
    result = run("list", "--checkpoint-dir", tmp_path)
    assert result.exit_code == 0
    assert "no completed checkpoint" in result.stdout
    assert answer("list", "--checkpoint-dir", tmp_path) == []


@pytest.mark.parametrize("name", ["2", "chk-2"])
def test_show_tells_positions_and_the_state_of_each_transaction(root: Path, name: str) -> None:
    shown = answer("show", "--no-states", name, "--checkpoint-dir", root)
    second = shown["snapshots"][1]
    assert shown["checkpoint_id"] == 2
    assert second["positions"] == [{"split": "in[1]", "partition": 1, "position": 201, "gaps": []}]
    assert [(each["name"], each["state"]) for each in second["committables"]] == [("txn-1-2", "confirmed")]
    assert second["state"] == {"path": "chk-2/subtask-1", "size_bytes": 2_048}


def test_show_latest_tells_which_transactions_are_outstanding(root: Path) -> None:
    shown = answer("show", "--no-states", "latest", "--checkpoint-dir", root)
    states = {each["name"]: each["state"] for snapshot in shown["snapshots"] for each in snapshot["committables"]}
    assert states == {"txn-0-3": "confirmed", "txn-1-3": "outstanding"}


def test_show_tells_when_the_checkpoint_went_through_which_phase(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint()
    where = ("show", "latest", "--no-states", "--checkpoint-dir", job.root)
    times = answer(*where)["times"]
    assert [times[name] - TRIGGERED_MS for name in ("acknowledged_ms", "completed_ms", "confirmed_ms")] == [
        250,
        253,
        270,
    ]
    first = {"subtask": 0, "pre_commit_ms": 8.5, "pause_ms": 12, "write_ms": 20, "store_ms": 200}
    assert times["subtasks"][0] == first | {"waited_ms": 3, "acknowledged_ms": 215}
    shown = run(*where).stdout
    for text in ("pre-commit", "8.5", "snapshot written", "253 ms", "all transactions confirmed", "270 ms"):
        assert text in shown


def test_show_has_a_dash_for_times_that_an_earlier_version_did_not_store(root: Path) -> None:
    times = answer("show", "--no-states", "latest", "--checkpoint-dir", root)["times"]
    assert (times["completed_ms"], times["confirmed_ms"], times["subtasks"]) == (None, None, [])
    lines = run("show", "--no-states", "latest", "--checkpoint-dir", root).stdout.splitlines()
    (confirmed,) = [line for line in lines if "all transactions confirmed" in line]
    assert confirmed.count(" - ") == 2


def test_show_says_that_small_state_is_in_the_metadata_and_not_what_it_is(tmp_path: Path) -> None:
    small = SmallJob(tmp_path / "checkpoints")
    small.checkpoint()
    shown = answer("show", "1", "--checkpoint-dir", small.root)
    sizes = [each.pop("size_bytes") for each in [snapshot["state"] for snapshot in shown["snapshots"]]]
    assert [snapshot["state"] for snapshot in shown["snapshots"]] == [{"path": "chk-1/metadata.json"}] * 2
    assert sum(sizes) == shown["size_bytes"] > 0
    assert [(each["state"], each["keys"]) for each in shown["states"]] == [("count", 2)]


def test_show_takes_the_path_of_a_checkpoint(root: Path) -> None:
    assert answer("show", "--no-states", root / "flights" / "chk-1")["checkpoint_id"] == 1


def test_show_as_tables_names_partitions_transactions_and_state(root: Path) -> None:
    result = run("show", "--no-states", "latest", "--checkpoint-dir", root)
    assert result.exit_code == 0
    for shown in ("flights", "301", "txn-1-3", "outstanding", "confirmed", "chk-3/subtask-1", "2.0 KiB"):
        assert shown in result.stdout


@pytest.mark.parametrize("command", [["list"], ["show", "latest"], ["show", "3"]])
def test_a_checkpoint_folder_that_is_not_there_is_named(tmp_path: Path, command: list[str]) -> None:
    message = error(ConfigurationError, *command, "--checkpoint-dir", tmp_path / "nothing")
    assert str(tmp_path / "nothing") in message
    assert "--checkpoint-dir" in message


@pytest.mark.parametrize("command", [["list"], ["show", "latest"]])
def test_a_job_that_is_not_there_is_named_with_those_that_are(root: Path, command: list[str]) -> None:
    message = error(ConfigurationError, *command, "--checkpoint-dir", root, "--job", "flihgts")
    assert "flihgts" in message
    assert "flights" in message


def test_a_checkpoint_that_is_not_there_is_named_with_those_that_are(root: Path) -> None:
    message = error(ConfigurationError, "show", "9", "--checkpoint-dir", root)
    assert "9" in message
    assert "1, 2, 3" in message


@pytest.mark.parametrize("name", ["", "newest", "-1", "0", "01", "../chk-1/subtask-0", "chk-"])
def test_what_names_no_checkpoint_is_refused(root: Path, name: str) -> None:
    assert "latest" in error(ConfigurationError, "show", "--checkpoint-dir", root, "--", name)


def test_show_asks_for_the_job_where_there_are_several(root: Path) -> None:
    store(root, "other", range(1, 2))
    assert "--job" in error(ConfigurationError, "show", "latest", "--checkpoint-dir", root)
    assert answer("show", "--no-states", "latest", "--checkpoint-dir", root, "--job", "other")["checkpoint_id"] == 1


def test_show_of_a_folder_without_jobs_says_so(tmp_path: Path) -> None:
    assert "no job" in error(ConfigurationError, "show", "latest", "--checkpoint-dir", tmp_path)


def test_the_path_of_another_jobs_checkpoint_is_refused(root: Path) -> None:
    message = error(ConfigurationError, "show", root / "flights" / "chk-1", "--job", "other")
    assert "flights" in message


def test_a_damaged_checkpoint_is_named_and_the_others_are_still_listed(root: Path) -> None:
    metadata = root / "flights" / "chk-2" / "metadata.json"
    metadata.write_bytes(metadata.read_bytes()[:-10])
    result = run("list", "--checkpoint-dir", root, "-o", "json")
    assert isinstance(result.exception, CheckpointCorrupted)
    assert "chk-2/metadata.json" in str(result.exception)
    assert [bool(each["damage"]) for each in json.loads(result.stdout)] == [False, True, False]
    assert "DAMAGED" in run("list", "--checkpoint-dir", root).stdout
    assert "chk-2/metadata.json" in error(CheckpointCorrupted, "show", "2", "--checkpoint-dir", root)


def test_looking_changes_nothing(root: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}
    run("list", "--checkpoint-dir", root)
    run("show", "--no-states", "latest", "--checkpoint-dir", root)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")} == before


def test_a_format_that_does_not_exist_is_refused(root: Path) -> None:
    assert run("list", "--checkpoint-dir", root, "-o", "yaml").exit_code == 2


@pytest.fixture
def whole(tmp_path: Path) -> StoredJob:
    """Two checkpoints with all their files; the first is a savepoint."""
    job = StoredJob(tmp_path / "whole")
    job.checkpoint(CheckpointKind.SAVEPOINT, "before-1.2")
    job.checkpoint(confirmed=False)
    return job


def test_verify_counts_what_it_has_read_and_finds_nothing(whole: StoredJob) -> None:
    (examined,) = answer("verify", "--checkpoint-dir", whole.root)
    assert (examined["job"], examined["checkpoints"], examined["findings"]) == (JOB, [1, 2], [])
    assert "nothing" in run("verify", "before-1.2", "--checkpoint-dir", whole.root).stdout


def test_verify_names_each_wrong_file_and_fails(whole: StoredJob) -> None:
    short = stored_path(whole.folder, "chk-1/subtask-0/000002.sst")
    short.write_bytes(b"short")
    (whole.folder / "chk-2/subtask-1.json").unlink()
    result = run("verify", "--checkpoint-dir", whole.root, "-o", "json")
    assert isinstance(result.exception, CheckpointCorrupted)
    assert result.exception.exit_code == 5
    (examined,) = json.loads(result.stdout)
    assert [(each["file"], each["problem"]) for each in examined["findings"]] == [
        (str(short.relative_to(whole.root)), "truncated"),
        (f"{JOB}/chk-2/subtask-1.json", "missing"),
    ]
    table = run("verify", "--checkpoint-dir", whole.root).stdout
    assert "truncated" in table
    assert "missing" in table


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
def test_copy_says_what_it_made_and_the_copy_can_be_shown_and_verified(
    whole: StoredJob, tmp_path: Path, name: str
) -> None:
    made = answer("copy", "latest", tmp_path / name, "--checkpoint-dir", whole.root)
    assert (made["job"], made["checkpoint_id"], made["outstanding"]) == (JOB, 2, ["txn-0-2", "txn-1-2"])
    assert answer("show", "--no-states", tmp_path / name)["checkpoint_id"] == 2
    assert answer("verify", tmp_path / name)[0]["checkpoints"] == [2]
    assert isinstance(
        run("copy", "latest", tmp_path / name, "--checkpoint-dir", whole.root).exception, ConfigurationError
    )


def test_copy_tells_people_of_transactions_that_are_open_still(whole: StoredJob, tmp_path: Path) -> None:
    result = run("copy", "latest", tmp_path / "copy", "--checkpoint-dir", whole.root)
    assert "2 of its transactions are not confirmed" in result.stdout
    assert "transactions" not in run("copy", "1", tmp_path / "copy-1", "--checkpoint-dir", whole.root).stdout


def test_show_compares_positions_with_the_brokers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = TopicPartition("in", 0), TopicPartition("in", 1)
    found = (
        OffsetStatus(first, Readability.DELETED, Position(400), Position(1_300), 1_000),
        OffsetStatus(second, Readability.GONE),
    )
    monkeypatch.setattr(offset_status, "fetch_offset_statuses", lambda servers, access, positions: found)
    shown = answer("show", "--no-states", "latest", "--checkpoint-dir", root, "-b", "broker:9092")["offset_statuses"]
    assert [(each["partition"], each["verdict"], each["behind"]) for each in shown] == [
        (0, "deleted by retention", 1_000),
        (1, "topic or partition is gone", None),
    ]
    table = run("show", "--no-states", "latest", "--checkpoint-dir", root, "-b", "broker:9092").stdout
    for text in ("deleted by retention", "1,000", "topic or partition is gone"):
        assert text in table


def test_show_gets_at_the_brokers_with_a_file_of_settings(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def ask(_servers: str, access: Any, _positions: Any) -> tuple[OffsetStatus, ...]:
        asked.append(access)
        return ()

    monkeypatch.setattr(offset_status, "fetch_offset_statuses", ask)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "me", "sasl.password": "hunter2"}
    (tmp_path / "client").write_text("".join(f"{name}={value}\n" for name, value in login.items()))
    where = ("--checkpoint-dir", root, "-b", "broker:9092", "--kafka-config", tmp_path / "client", "-o", "json")
    assert "hunter2" not in run("show", "--no-states", "latest", *where).output
    assert asked == [login]
