"""What every command has in common: one message for an error, an exit code, a traceback only on demand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.stored_job import StoredJob
from twopc import cli
from twopc.__main__ import main
from twopc.errors import DEBUG_VARIABLE, ConfigurationError, Fenced, TwoPhaseCommitError, Unavailable
from twopc.protocol.checkpoints import CheckpointKind

Raise = Callable[[BaseException], None]


@pytest.fixture
def command_raises(monkeypatch: pytest.MonkeyPatch) -> Raise:
    def arrange(error: BaseException) -> None:
        def app() -> None:
            raise error

        monkeypatch.setattr(cli, "app", app)

    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    return arrange


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unavailable("no broker at 127.0.0.1:1: start it"), 1),
        (ConfigurationError("parallelism must be at least 1"), 2),
        (Fenced("a newer attempt runs"), 4),
        (PermissionError(13, "Permission denied", "folder"), 1),
    ],
)
def test_a_known_error_is_one_message_and_its_exit_code(
    error: Exception, code: int, command_raises: Raise, capsys: pytest.CaptureFixture[str]
) -> None:
    command_raises(error)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == f"error: {error}\n"


def test_the_traceback_is_there_for_who_asks(command_raises: Raise, monkeypatch: pytest.MonkeyPatch) -> None:
    command_raises(Unavailable("no broker"))
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    with pytest.raises(TwoPhaseCommitError, match="no broker"):
        cli.main()


def test_ctrl_c_while_a_command_is_still_being_imported_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Importing(ModuleType):
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "twopc.cli", Importing("twopc.cli"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_ctrl_c_exits_as_shells_expect(command_raises: Raise) -> None:
    command_raises(KeyboardInterrupt())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130


def test_an_error_of_ours_that_nobody_foresaw_keeps_its_traceback(command_raises: Raise) -> None:
    command_raises(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main()


@pytest.mark.parametrize("command", [["brokr"], ["broker", "strat"], ["broker", "start", "--prot", "1"], ["run", "-Z"]])
def test_what_does_not_exist_is_a_usage_error(command: list[str]) -> None:
    answer = CliRunner().invoke(cli.app, command)
    assert answer.exit_code == 2
    assert "No such" in answer.stderr


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["run"],
        ["coordinator", "start"],
        ["jobs", "list"],
        ["jobs", "show"],
        ["jobs", "checkpoint"],
        ["savepoint"],
        ["stop"],
        *(["state", command] for command in ("list", "get", "scan", "export", "diff")),
        ["broker", "start"],
        ["broker", "status"],
        ["broker", "stop"],
        ["drill"],
        ["version"],
    ],
)
def test_help_shows_how_a_command_is_used(command: list[str]) -> None:
    answer = CliRunner().invoke(cli.app, [*command, "--help"], prog_name="twopc")
    assert answer.exit_code == 0
    example = " ".join(["twopc", *command])
    assert answer.stdout.count(example) > 1, "the usage line, and an example"


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that name it."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    for name in names:
        yield from leaves(command.get_command(None, name), (*path, name))
    if not names:
        yield path, command


def test_every_command_has_an_example_that_can_be_pasted_as_it_is_shown() -> None:
    for path, command in leaves(get_command(cli.app)):
        shown = CliRunner().invoke(cli.app, [*path, "--help"], prog_name="twopc", terminal_width=80).stdout
        lines = [re.sub(r"^\s*Examples?:\s*", "", line).strip() for line in command.help.splitlines()]
        examples = [line for line in lines if line.startswith(" ".join(["twopc", *path]))]
        assert examples, f"{path} has no example"
        for example in examples:
            assert example in shown


def completed(*words: str) -> list[str]:
    """What bash offers for the last of these words."""
    asked = {"_TWOPC_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": f"{len(words) - 1}"}
    return CliRunner().invoke(cli.app, [], prog_name="twopc", env=asked).stdout.split()


def test_a_shell_can_complete_commands_and_options() -> None:
    assert "--install-completion" in CliRunner().invoke(cli.app, ["--help"]).stdout
    assert "--install-completion" not in CliRunner().invoke(cli.app, ["checkpoints", "--help"]).stdout
    assert completed("twopc", "s") == ["savepoint", "stop", "state"]
    assert completed("twopc", "checkpoints", "dis") == ["dispose"]
    assert "--checkpoint-dir" in completed("twopc", "state", "list", "--check")


def test_a_shell_can_complete_the_values_of_options() -> None:
    assert completed("twopc", "run", "--host", "") == ["spark", "process", "inline"]
    assert completed("twopc", "run", "--restart-strategy", "f") == ["fixed-delay"]
    assert completed("twopc", "run", "--log-level", "w") == ["warning"]
    assert "local[*]" in completed("twopc", "run", "--master", "l")


def test_a_shell_can_complete_jobs_checkpoints_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "checkpoints"
    stored = StoredJob(folder, "orders")
    stored.checkpoint()
    stored.checkpoint(CheckpointKind.SAVEPOINT, "before-1.2")
    monkeypatch.setenv("TWOPC_CHECKPOINT_DIR", str(folder))
    assert completed("twopc", "stop", "o") == ["orders"]
    assert completed("twopc", "checkpoints", "show", "--job", "") == ["orders"]
    assert completed("twopc", "checkpoints", "show", "") == ["latest", "2", "before-1.2", "1"]
    assert completed("twopc", "run", "upper.py", "--from", "b") == ["before-1.2"]
    assert "none" in completed("twopc", "run", "upper.py", "--from", "")


def test_where_there_are_no_checkpoints_completion_offers_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_CHECKPOINT_DIR", str(tmp_path / "missing"))
    assert completed("twopc", "stop", "") == []
    assert completed("twopc", "checkpoints", "show", "") == ["latest"]


def test_the_version_is_printed_by_an_option_too() -> None:
    answer = CliRunner().invoke(cli.app, ["--version"], prog_name="twopc")
    assert (answer.exit_code, answer.stdout) == (0, f"twopc {version('twopc-streams')}\n")


def test_whatever_a_command_answers_can_be_had_as_json() -> None:
    for path, command in leaves(get_command(cli.app)):
        names = {name for parameter in command.params for name in parameter.opts}
        assert {"-o", "--output"} <= names, path


def test_help_lists_every_command() -> None:
    listed = CliRunner().invoke(cli.app, ["--help"]).stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == [
        "run",
        "jobs",
        "savepoint",
        "stop",
        "checkpoints",
        "state",
        "coordinator",
        "ui",
        "verify",
        "topics",
        "dead-letters",
        "produce",
        "bench",
        "broker",
        "drill",
        "version",
    ]


def test_a_command_does_not_load_what_another_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "twopc.cli.run", raising=False)
    assert CliRunner().invoke(cli.app, ["version"]).exit_code == 0
    assert "twopc.cli.run" not in sys.modules


def test_a_job_is_explained_without_being_run(tmp_path: Path) -> None:
    job_file = tmp_path / "words.py"
    job_file.write_text(
        "from twopc import Job, KafkaSink, KafkaSource\n"
        "job = Job('words')\n"
        "job.source(KafkaSource('in'), name='words').map(len).sink(KafkaSink('out'))\n"
    )
    shown = CliRunner().invoke(cli.app, ["run", str(job_file), "--explain"])
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["job", "words", "map-1", "sink-1"]
    drawn = CliRunner().invoke(cli.app, ["run", str(job_file), "--explain", "-o", "mermaid"]).stdout.splitlines()
    assert drawn[0] == "flowchart TD"
    assert drawn[-2:] == ["  n0 --> n1", "  n1 --> n2"]
    data = json.loads(CliRunner().invoke(cli.app, ["run", str(job_file), "--explain", "-o", "json"]).stdout)
    assert [(each["id"], each["inputs"]) for each in data["operators"]] == [
        ("words", []),
        ("map-1", ["words"]),
        ("sink-1", ["map-1"]),
    ]


def test_a_drawing_is_of_a_job_that_is_not_run(tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli.app, ["run", str(tmp_path / "job.py"), "-o", "mermaid"])
    assert isinstance(refused.exception, ConfigurationError)
    assert "add --explain" in str(refused.exception)


def test_help_on_a_run_waits_for_no_kafka_client_to_load() -> None:
    code = "import sys, twopc.cli.run; sys.exit(bool({'kafka', 'confluent_kafka'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("readers", ["all there", "gone"])
def test_a_pipe_that_breaks_is_said_unless_it_is_that_of_the_output(readers: str, tmp_path: Path) -> None:
    code = (
        "import types\nfrom twopc import cli\n"
        "def version(): raise BrokenPipeError(32, 'Broken pipe')\n"
        "cli.import_module = lambda name: types.SimpleNamespace(version=version)\n"
        "cli.main(['version'])\n"
    )
    reading, writing = os.pipe()
    if readers == "gone":
        os.close(reading)
    with (tmp_path / "err").open("w") as errors:
        done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=errors, timeout=60, check=False)
    assert done.returncode == 1
    said = (tmp_path / "err").read_text()
    assert ("[Errno 32] Broken pipe: a process or server" in said) == (readers == "all there")
    os.close(writing)
    if readers != "gone":
        os.close(reading)
