"""What `twopc state` says of the state in a checkpoint, to a person and to a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from tests.inspect.kit import LEFT, RIGHT, JobWithState
from tests.stored_job import stored_path
from twopc import cli
from twopc.cli.state import app
from twopc.cli.state_report import change_line
from twopc.errors import CheckpointCorrupted, ConfigurationError, TwoPhaseCommitError
from twopc.inspect import KeyChange, StateEntry
from twopc.protocol.ids import SubtaskIndex
from twopc.serde import Json
from twopc.state.layout import StateName


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints 1 and 2 of a job with the states count, and other, of which nobody said how it is encoded."""
    job = JobWithState(tmp_path_factory.mktemp("job") / "checkpoints")
    job.put(LEFT, b"EWR", b"5")
    job.put(LEFT, b"LGA", b"3")
    job.put(RIGHT, b"LGA", b"2")
    job.put(RIGHT, b"\x1b[31m", b"1")
    job.put(RIGHT, b"\xff", b"\x00", "other")
    job.checkpoint()
    del job.values[LEFT, "count", b"EWR"]
    job.put(LEFT, b"JFK", b"9")
    job.put(RIGHT, b"LGA", b"4")
    job.checkpoint()
    return job.root


def run(root: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments), "--checkpoint-dir", str(root)])


def answer(root: Path, *arguments: str | Path, code: int = 0) -> Any:
    result = run(root, *arguments, "-o", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def error(expected: type[Exception], root: Path, *arguments: str | Path) -> str:
    result = run(root, *arguments)
    assert isinstance(result.exception, expected), result.output
    return str(result.exception)


def test_list_tells_the_states_their_serdes_and_sizes(root: Path) -> None:
    assert answer(root, "list", "1") == [
        {"operator": "count", "state": "count", "serde": "Json()", "keys": 4, "size_bytes": 3 * 4 + 6},
        {"operator": "other", "state": "other", "serde": None, "keys": 1, "size_bytes": 3},
    ]
    shown = run(root, "list").stdout
    assert "count" in shown
    assert "not known" in shown


def test_get_shows_a_key_in_every_partition_that_has_it(root: Path) -> None:
    found = answer(root, "get", "1", "count", "LGA")
    assert [(row["partition"], row["key"], row["value"]) for row in found] == [(0, "LGA", 3), (1, "LGA", 2)]
    assert [row["value"] for row in answer(root, "get", "1", "count", "LGA", "--partition", "1")] == [2]
    shown = run(root, "get", "1", "count", "LGA").stdout
    assert [line.split()[1:4:2] for line in shown.splitlines()[3:5]] == [["count", "0"], ["count", "1"]]
    assert "LGA" in shown


@pytest.mark.parametrize(
    ("key", "key_as", "value"),
    [("1", "text", 10), ("1", "json", 11), ('"1"', "json", 10), ('{"a":1}', "text", 12), ('{ "a": 1 }', "json", 13)],
)
def test_get_tells_text_from_what_else_is_json(tmp_path: Path, key: str, key_as: str, value: int) -> None:
    job = JobWithState(tmp_path / "checkpoints")
    for each, state in (("1", b"10"), (1, b"11"), ('{"a":1}', b"12"), ({"a": 1}, b"13")):
        job.put(RIGHT, each, state)
    job.checkpoint()
    (found,) = answer(job.root, "get", "1", "count", key, "--key-as", key_as)
    assert found["value"] == value


def test_get_says_how_a_number_is_named(root: Path) -> None:
    result = run(root, "get", "1", "count", "7")
    assert result.exit_code == 1
    assert "--key-as json" in str(result.exception)


@pytest.mark.parametrize("key", [("ff", "hex"), ("/w==", "base64")])
def test_get_finds_a_key_that_is_not_text_and_shows_bytes_of_which_nobody_said_what_they_are(
    root: Path, key: tuple[str, str]
) -> None:
    (row,) = answer(root, "get", "latest", "other", key[0], "--key-as", key[1])
    assert (row["key_base64"], row["value_base64"]) == ("/w==", "AA==")
    assert r"b'\x00'" in run(root, "get", "latest", "other", key[0], "--key-as", key[1]).stdout


def test_a_key_that_is_not_there_is_an_empty_answer_and_exit_code_1(root: Path) -> None:
    message = error(TwoPhaseCommitError, root, "get", "2", "count", "EWR")
    assert message == "state 'count' of checkpoint 2 has no key 'EWR'"
    assert TwoPhaseCommitError.exit_code == 1
    assert json.loads(run(root, "get", "2", "count", "EWR", "-o", "json").stdout) == []


def test_scan_shows_all_one_state_or_the_keys_that_begin_so(root: Path) -> None:
    assert [row["state"] for row in answer(root, "scan", "1")] == ["count"] * 4 + ["other"]
    assert [row["key"] for row in answer(root, "scan", "1", "count")] == ["EWR", "LGA", "\x1b[31m", "LGA"]
    assert [row["partition"] for row in answer(root, "scan", "1", "count", "--prefix", "L")] == [0, 1]
    assert answer(root, "scan", "1", "count", "--prefix", "none") == []


def test_scan_says_when_there_is_more_than_it_shows(root: Path) -> None:
    limited = run(root, "scan", "1", "-n", "2", "-o", "json")
    assert len(json.loads(limited.stdout)) == 2
    assert "more than 2" in limited.stderr
    assert "more than" not in run(root, "scan", "1", "-n", "0").stderr


def test_what_a_terminal_would_act_upon_is_shown_escaped(root: Path) -> None:
    for command in (["scan", "1"], ["diff", "1", "2"], ["list", "1"]):
        assert "\x1b" not in run(root, *command).stdout
    assert r"\x1b[31m" in run(root, "scan", "1").stdout


def test_what_a_terminal_would_act_upon_is_escaped_in_values_too() -> None:
    entry = StateEntry(StateName.parse("count"), SubtaskIndex(0), 0, b"k", '"\x9b31m"'.encode(), Json())
    assert change_line(KeyChange(None, entry)) == r'+ count 0 k "\x9b31m"'


@pytest.mark.parametrize(
    "command",
    [["get", "1", "count", "LGA"], ["scan", "1"], ["export", "1"], ["diff", "1", "2"]],
    ids=lambda each: each[0],
)
def test_a_serde_for_a_state_that_is_not_there_is_refused_with_those_that_are(root: Path, command: list[str]) -> None:
    result = run(root, *command, "--serde", "cuont=json")
    assert isinstance(result.exception, TwoPhaseCommitError), result.output
    assert "--serde names state 'cuont'" in str(result.exception)
    assert "there: count, other" in str(result.exception)
    assert result.stdout == ""


def test_serdes_can_be_given_by_name_or_by_the_job_file(root: Path, tmp_path: Path) -> None:
    (row,) = answer(root, "scan", "1", "other", "--serde", "other=string")
    assert row["value"] == "\x00"
    (tmp_path / "told_job.py").write_text(
        "from twopc import Job, KafkaSink, KafkaSource, String\n"
        "stream = Job('flights').source(KafkaSource('in'))\n"
        "job = stream.stateful_map(print, name='other', state=String()).sink(KafkaSink('out'))\n"
    )
    (row,) = answer(root, "scan", "1", "other", "--job-file", tmp_path / "told_job.py")
    assert row["value"] == "\x00"


def test_export_writes_json_lines_to_standard_output_or_a_file(root: Path, tmp_path: Path) -> None:
    printed = [json.loads(line) for line in run(root, "export", "1", "count").stdout.splitlines()]
    assert printed == answer(root, "scan", "1", "count")
    assert answer(root, "export", "1", "count", "--to", tmp_path / "out.jsonl")["rows"] == 4
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == printed


def test_export_writes_parquet(root: Path, tmp_path: Path) -> None:
    assert "5 rows" in run(root, "export", "1", "--to", tmp_path / "out.parquet").stdout
    assert parquet.read_table(tmp_path / "out.parquet").column("key").to_pylist()[:2] == ["EWR", "LGA"]


def test_nothing_is_exported_into_a_jobs_checkpoint_folder(root: Path) -> None:
    to = root / "flights" / "chk-1" / "out.jsonl"
    assert "looks like damage" in error(ConfigurationError, root, "export", "1", "--to", to)
    assert not to.exists()


def test_diff_shows_what_changed_with_both_values_and_exits_with_1(root: Path) -> None:
    found = answer(root, "diff", "1", "2", code=1)
    assert [(each["change"], each["key"], each["old"], each["new"]) for each in found["changes"]] == [
        ("removed", "EWR", {"value": 5}, None),
        ("added", "JFK", None, {"value": 9}),
        ("changed", "LGA", {"value": 2}, {"value": 4}),
    ]
    assert [found[name] for name in ("old", "new", "added", "removed", "changed", "same")] == [1, 2, 1, 1, 1, 3]
    assert found["positions"][0] == {"split": "in[0]", "old": 100, "new": 200}


def test_diff_as_text_has_a_line_for_each_change(root: Path) -> None:
    result = run(root, "diff", "1", "2")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "  position of in[0]: 100 -> 200",
        "  position of in[1]: 100 -> 200",
        "- count 0 EWR 5",
        "+ count 0 JFK 9",
        "~ count 1 LGA 2 -> 4",
        "1 added, 1 removed, 1 changed, 3 same",
    ]


def test_diff_of_what_is_the_same_exits_with_0(root: Path) -> None:
    assert answer(root, "diff", "1", "1")["changes"] == []
    assert answer(root, "diff", "1", "2", "other")["same"] == 1


def test_diff_never_exits_with_1_for_what_it_could_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: (_ for _ in ()).throw(PermissionError(13, "no room")))
    with pytest.raises(SystemExit) as ended:
        cli.main(["state", "diff", "1", "2", "--checkpoint-dir", str(root)])
    assert ended.value.code == 2
    assert "no room" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scan", "9"], "no completed checkpoint 9"),
        (["scan", "1", "total"], "no state 'total'; it has: count, other"),
        (["scan", "1", "--prefix", "L"], "--prefix needs a state"),
        (["get", "1", "count", "xyz", "--key-as", "hex"], "is not hex"),
        (["get", "1", "count", "x", "--partition", "7"], "no partition 7; it has 0, 1"),
        (["scan", "1", "--serde", "count=avro"], "--serde 'count=avro' is not STATE=json"),
        (["export", "1", "--to", "out.csv"], "doesn't say its format"),
        (["diff", "1", "2", "total"], "neither checkpoint has a state 'total'"),
    ],
)
def test_what_can_not_be_answered_is_one_error_that_says_what_there_is(
    root: Path, arguments: list[str], said: str
) -> None:
    assert said in error(ConfigurationError, root, *arguments)


def test_a_damaged_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    job = JobWithState(tmp_path / "checkpoints")
    job.checkpoint()
    path = stored_path(job.folder, "chk-1/subtask-0/CURRENT")
    path.write_bytes(b"MANIFEST-000099\n")
    assert path.name in error(CheckpointCorrupted, job.root, "list", "1")
