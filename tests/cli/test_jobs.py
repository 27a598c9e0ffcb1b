"""`twopc jobs`, `twopc savepoint` and `twopc stop`, against a real coordinator with scripted subtasks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator.server import CoordinatorServer
from tests.rpc.kit import JOB, PATIENCE_SECONDS, SETTINGS, ScriptedSubtask, eventually, start_attempt
from tests.stored_job import StoredJob
from twopc import cli, events
from twopc.driver.discovery import announced
from twopc.errors import CheckpointDeclined, ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.figures import DEAD_LETTERS, RECORDS_SKIPPED
from twopc.protocol.ids import AttemptId
from twopc.protocol.messages import Decline, Drain, EndOfInput, Failed, Progress, Trigger
from twopc.protocol.requests import ConfirmCommittables, NextGlobalCommit, NoteInput, RefuseRescale
from twopc.rpc.admin_client import AdminClient
from twopc.rpc.job_client import JobClient
from twopc.storage.local import LocalStore

TOKEN = "canary-token"
RARELY = replace(SETTINGS, checkpoint_interval_ms=600_000)


class Site:
    """A job on a coordinator, and how a command is told where that is."""

    def __init__(self, root: Path, address: str, token_file: Path, subtasks: list[ScriptedSubtask]) -> None:
        self.root = root
        self.service = ["--coordinator", address, "--token-file", str(token_file)]
        self.embedded = ["--checkpoint-dir", str(root)]
        self.address = address
        self.subtasks = subtasks


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("TWOPC_COORDINATOR", "TWOPC_CHECKPOINT_DIR", "TWOPC_COORDINATOR_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    root, token_file = tmp_path / "checkpoints", tmp_path / "token"
    token_file.write_text(f"{TOKEN}\n")
    server = CoordinatorServer(LocalStore(root), token=TOKEN)
    address = server.start()
    driver = JobClient(address, token=TOKEN, patience_seconds=PATIENCE_SECONDS)
    attempt = start_attempt(driver, JOB, RARELY).attempt
    subtasks = [ScriptedSubtask(address, attempt, subtask, token=TOKEN) for subtask in (0, 1)]
    with announced(JOB, LocalStore(root), address, TOKEN), AdminClient(address, token=TOKEN) as admin:
        eventually(lambda: all(each.attached for each in admin.subtasks(JOB)), "both are attached")
        yield Site(root, address, token_file, subtasks)
    for subtask in subtasks:
        subtask.close()
    driver.close()
    server.stop()


def say(*arguments: str) -> str:
    """Run a command; what it wrote to standard output."""
    answer = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.stdout


def ask(*arguments: str) -> Any:
    return json.loads(say(*arguments, "-o", "json"))


@pytest.fixture(params=["service", "embedded"])
def options(site: Site, request: pytest.FixtureRequest) -> list[str]:
    """Both ways to say which coordinator is meant."""
    return list(getattr(site, request.param))


def test_a_job_is_listed_and_shown(site: Site, options: list[str]) -> None:
    (listed,) = ask("jobs", "list", *options)
    assert (listed["job"], listed["attempt"], listed["attached"], listed["parallelism"]) == (JOB, 1, 2, 2)
    shown = ask("jobs", "show", JOB, *options)
    assert [each["attached"] for each in shown["subtasks"]] == [True, True]
    assert shown["settings"]["interval_ms"] == RARELY.checkpoint_interval_ms


def test_what_a_global_committer_has_still_to_commit_is_shown_until_its_driver_has_confirmed_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    for subtask in site.subtasks:
        subtask.is_global = True
    number = ask("savepoint", JOB, *site.service)["checkpoint_id"]
    names = [f"t{number}-0", f"t{number}-1"]
    assert ask("jobs", "show", JOB, *site.service)["kept"][0]["globally_outstanding"] == names
    assert "2 of them globally" in say("jobs", "show", JOB, *site.service)
    assert ask("checkpoints", "show", "latest", "--checkpoint-dir", str(site.root))["globally_outstanding"] == 2
    assert "2 of 2 outstanding, 2 of them globally" in say("checkpoints", "list", "--checkpoint-dir", str(site.root))
    driver = JobClient(site.address, token=TOKEN, patience_seconds=PATIENCE_SECONDS)
    due = driver.ask(JOB, NextGlobalCommit(AttemptId(1)))
    assert due is not None
    assert (due.checkpoint_id, [item.name for item in due.committables]) == (number, names)
    driver.ask(JOB, ConfirmCommittables(AttemptId(1), due.checkpoint_id, tuple(names)))
    assert driver.ask(JOB, NextGlobalCommit(AttemptId(1))) is None
    driver.close()
    assert ask("jobs", "show", JOB, *site.service)["kept"][0]["outstanding"] == []


def test_a_savepoint_is_taken_and_says_where_it_is(site: Site, options: list[str]) -> None:
    taken = ask("savepoint", JOB, "--label", "before-1.2", *options)
    assert (taken["completed"], taken["kind"], taken["label"]) == (True, "savepoint", "before-1.2")
    assert (site.root / taken["folder"] / "metadata.json").exists()


def test_a_job_is_stopped_with_a_last_checkpoint(site: Site, options: list[str]) -> None:
    stopped = ask("stop", JOB, *options)
    assert stopped["finished"]
    assert (site.root / JOB / f"chk-{stopped['checkpoint_id']}").is_dir()


def test_a_job_is_stopped_with_a_savepoint_that_has_a_label(site: Site, options: list[str]) -> None:
    stopped = ask("stop", JOB, "--savepoint", "--label", "before-1.2", *options)
    assert (stopped["finished"], stopped["savepoint"], stopped["label"]) == (True, True, "before-1.2")
    listed = ask("checkpoints", "list", "--checkpoint-dir", str(site.root))
    assert (listed[-1]["kind"], listed[-1]["label"]) == ("final-savepoint", "before-1.2")


def test_a_drain_ends_when_every_subtask_has_read_to_the_end(site: Site) -> None:
    for subtask in site.subtasks:
        subtask.answer = _read_to_end(subtask)
    assert ask("stop", JOB, "--drain", *site.embedded)["finished"]
    assert all(any(isinstance(message, Drain) for message in subtask.heard) for subtask in site.subtasks)


def test_a_second_stop_of_a_job_that_has_ended_with_its_coordinator_says_how_it_ended(tmp_path: Path) -> None:
    job, where = StoredJob(tmp_path / "checkpoints"), ["--checkpoint-dir", str(tmp_path / "checkpoints")]
    job.checkpoint()
    job.end()
    again = ask("stop", job.job, *where)
    assert (again["finished"], again["checkpoint_id"]) == (True, 1)
    assert "checkpoint 1 is the last" in say("stop", job.job, *where)
    with pytest.raises(ConfigurationError, match="no run of job"):
        say("stop", job.job, "--savepoint", *where)


def test_a_stop_of_a_job_that_was_killed_says_what_the_ledger_knows(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint()
    with pytest.raises(
        ConfigurationError, match=r"its last attempt, 1, has not ended in order.*newest checkpoint \(1\)"
    ):
        say("stop", job.job, "--checkpoint-dir", str(job.root))


def test_a_label_without_a_savepoint_is_refused(site: Site) -> None:
    with pytest.raises(ConfigurationError, match="a label names a savepoint"):
        say("stop", JOB, "--label", "v1", *site.embedded)


def test_a_savepoint_is_disposed_of_while_the_job_runs_and_after_it(site: Site, options: list[str]) -> None:
    for label in ("one", "two"):
        ask("savepoint", JOB, "--label", label, *options)
    ask("jobs", "checkpoint", JOB, *options)
    where = ["--checkpoint-dir", str(site.root)]
    assert (
        ask("checkpoints", "dispose", "one", *where, *[each for each in options if each not in where])["disposed"] == 1
    )
    assert not (site.root / JOB / "chk-1").exists()
    with pytest.raises(ConfigurationError, match="it is the newest"):
        say("checkpoints", "dispose", "3", *where)
    ask("stop", JOB, *options)
    assert "disposed of" in say("checkpoints", "dispose", "two", *where)
    assert [each["checkpoint_id"] for each in ask("checkpoints", "list", *where)] == [3, 4]


def test_nothing_is_disposed_of_behind_the_back_of_a_run_that_may_be_elsewhere(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint(CheckpointKind.SAVEPOINT)
    job.checkpoint()
    where = ["--checkpoint-dir", str(job.root)]
    with pytest.raises(ConfigurationError, match="--killed"):
        say("checkpoints", "dispose", "1", *where)
    assert ask("checkpoints", "dispose", "1", "--killed", *where) == {"job": job.job, "disposed": 1}


def test_a_label_that_several_bear_does_not_say_which_one_to_delete(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    for _ in range(2):
        job.checkpoint(CheckpointKind.SAVEPOINT, label="v1")
    job.checkpoint()
    where = ["--killed", "--checkpoint-dir", str(job.root)]
    with pytest.raises(ConfigurationError, match=r"2 checkpoints .* 'v1': name one by its id \(1, 2\)"):
        say("checkpoints", "dispose", "v1", *where)
    say("checkpoints", "dispose", "1", *where)
    assert ask("checkpoints", "dispose", "v1", *where)["disposed"] == 2


def test_a_job_that_has_no_room_for_more_subtasks_is_not_rescaled(site: Site) -> None:
    driver = JobClient(site.address, token=TOKEN, patience_seconds=PATIENCE_SECONDS)

    def refuse() -> None:
        for told in driver.watch(JOB):
            if isinstance(told, events.RescaleRequested):
                driver.ask(JOB, RefuseRescale(told.attempt, told.request_id, f"no room for {told.parallelism}"))

    refusing = threading.Thread(target=refuse)
    refusing.start()
    with pytest.raises(ConfigurationError, match="no room for 9"):
        say("jobs", "rescale", JOB, "-p", "9", *site.embedded)
    driver.stop_watching()
    refusing.join()
    driver.close()


def test_a_job_is_rescaled_when_as_many_subtasks_of_its_next_attempt_run(site: Site) -> None:
    driver = JobClient(site.address, token=TOKEN, patience_seconds=PATIENCE_SECONDS)
    subtasks: list[ScriptedSubtask] = []

    def start_again() -> None:
        for told in driver.watch(JOB):
            if isinstance(told, events.RescaleRequested):
                settings = replace(RARELY, parallelism=told.parallelism)
                attempt = start_attempt(driver, JOB, settings, restart=True).attempt
                subtasks.append(ScriptedSubtask(site.address, attempt, 0, token=TOKEN))

    starting = threading.Thread(target=start_again)
    starting.start()
    rescaled = ask("jobs", "rescale", JOB, "-p", "1", *site.service)
    driver.stop_watching()
    starting.join()
    driver.close()
    assert (rescaled["attempt"], rescaled["before"], rescaled["parallelism"]) == (2, 2, 1)
    assert "runs with 1 subtasks already, as attempt 2" in say("jobs", "rescale", JOB, "-p", "1", *site.service)
    for subtask in subtasks:
        subtask.close()


def test_people_get_sentences_and_tables(site: Site) -> None:
    site.subtasks[0].link.send(Progress(12_345, 7, None, "late-1-0-0", ("late-1-0-1",)))
    assert "checkpoint 1 completed in" in say("jobs", "checkpoint", JOB, *site.embedded)
    assert f"{JOB}/chk-2" in say("savepoint", JOB, "--label", "v1", *site.embedded)
    site.subtasks[0].answer = _decline(site.subtasks[0])
    with pytest.raises(CheckpointDeclined):
        say("jobs", "checkpoint", JOB, *site.embedded)
    listed, shown = say("jobs", "list", *site.embedded), say("jobs", "show", JOB, *site.embedded)
    assert "2 of 2" in listed
    for text in ("12,345", "late-1-0-0", "savepoint", "v1", "manual", "CHECKPOINT_DECLINED", "no room", "unknown"):
        assert text in shown


def test_records_that_went_wrong_are_shown_by_source_and_operator(site: Site) -> None:
    for count, subtask in enumerate(site.subtasks, 1):
        at = ("orders", "map(priced)")
        wrong = dict((RECORDS_SKIPPED.of([(at, count)]), DEAD_LETTERS.of([(at, 10 * count)])))
        subtask.link.send(Progress(99, 9, None, None, figures=wrong))
    eventually(lambda: [each["record_errors"] for each in ask("jobs", "list", *site.service)] == [33], "both reported")
    assert "33" in say("jobs", "list", *site.service)
    told = say("jobs", "show", JOB, *site.service).split("Records that went wrong")[1]
    shown = ["orders", "map(priced)", "3", "30"]
    assert [word for word in told.split() if word in shown] == shown
    figures = ask("jobs", "show", JOB, *site.service)["subtasks"][0]["progress"]["figures"]
    assert figures == {
        RECORDS_SKIPPED.name: [{"labels": ["orders", "map(priced)"], "value": 1}],
        DEAD_LETTERS.name: [{"labels": ["orders", "map(priced)"], "value": 10}],
    }


def test_a_checkpoint_that_is_aborted_is_an_error_with_its_reason(site: Site) -> None:
    site.subtasks[0].answer = _decline(site.subtasks[0])
    with pytest.raises(CheckpointDeclined, match=r"CHECKPOINT_DECLINED \(a subtask could not take its part\).*no room"):
        say("savepoint", JOB, *site.embedded)
    answer = CliRunner().invoke(cli.app, ["savepoint", JOB, *site.embedded, "-o", "json"])
    assert answer.exit_code == 1
    assert json.loads(answer.stdout)["reason"] == "CHECKPOINT_DECLINED"


def test_a_job_that_fails_instead_of_stopping_is_an_error(site: Site) -> None:
    site.subtasks[0].answer = lambda message: site.subtasks[0].link.send(Failed("UserCodeError", "poison", False))
    with pytest.raises(TwoPhaseCommitError, match=r"did not stop in order: .*poison"):
        say("stop", JOB, *site.embedded)


def test_an_outcome_is_waited_for_as_long_as_was_said(site: Site) -> None:
    site.subtasks[0].answer = lambda message: None
    with pytest.raises(Unavailable):
        say("savepoint", JOB, "--timeout", "300ms", *site.embedded)
    with pytest.raises(ConfigurationError, match="--timeout"):
        say("savepoint", JOB, "--timeout", "soon", *site.embedded)


def test_what_can_not_be_found_is_said_so_with_what_to_do(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--coordinator"):
        say("stop", "nobody", *site.embedded)
    with pytest.raises(ConfigurationError, match=f"there are: {JOB}"):
        say("stop", "nobody", *site.service)
    with pytest.raises(ConfigurationError, match="can't be used"):
        say("jobs", "show", "../nobody", *site.embedded)
    with pytest.raises(ConfigurationError, match="refused the token"):
        say("jobs", "list", "--coordinator", site.address)
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigurationError, match="is empty"):
        say("jobs", "list", "--coordinator", site.address, "--token-file", str(tmp_path / "empty"))
    assert "no job" in say("jobs", "list", "--checkpoint-dir", str(tmp_path))


def _read_to_end(subtask: ScriptedSubtask) -> Callable[[Any], None]:
    usual = subtask.answer

    def answer(message: Any) -> None:
        if isinstance(message, Drain):
            subtask.link.send(EndOfInput())
        else:
            usual(message)

    return answer


def _decline(subtask: ScriptedSubtask) -> Callable[[Any], None]:
    def answer(message: Any) -> None:
        if isinstance(message, Trigger):
            subtask.link.send(Decline(message.checkpoint_id, "no room"))

    return answer


def test_what_is_hidden_of_a_jobs_input_stands_under_its_headline(site: Site) -> None:
    driver = JobClient(site.address, token=TOKEN, patience_seconds=PATIENCE_SECONDS)
    hidden = "in[0] can be read up to offset 0: what stands behind is hidden by the open transaction of 'stranger'"
    driver.ask(JOB, NoteInput(AttemptId(1), (hidden,)))
    driver.close()
    assert f"input: {hidden}" in say("jobs", "show", JOB, *site.embedded).replace("\n", "")
    assert ask("jobs", "show", JOB, *site.embedded)["input_notes"] == [hidden]
