"""What the page is told of jobs: of one that runs, and of one that does not."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.stored_job import JOB
from tests.ui.kit import CHECKPOINTS, GRAPH, RUNS, Shown, asked, stored_job
from twopc.errors import Unavailable
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import metadata_path
from twopc.ui import pages
from twopc.ui.jobs import LEAST_SECONDS, MOST_SECONDS
from twopc.web.answer import EventStream, Question
from twopc.web.server import WebServer


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    stored_job(tmp_path)
    return Shown(tmp_path)


@pytest.fixture
def server(shown: Shown) -> Iterator[WebServer]:
    with shown.server() as server:
        yield server


def document(server: WebServer) -> Any:
    status, found = asked(server.address, f"/api/jobs/{JOB}")
    assert status == 200
    return found


def test_a_job_that_does_not_run_is_shown_from_its_ledger(server: WebServer) -> None:
    assert asked(server.address, "/api/jobs") == (
        200,
        [
            {
                "job": JOB,
                "phase": "no run found here",
                "runs": False,
                "problem": "",
                "checkpoint_id": 2,
                "completed_ms": 1_700_000_000_250,
            }
        ],
    )
    found = document(server)
    assert found["described"] is None
    assert [(each["checkpoint_id"], each["outcome"]) for each in found["checkpoints"]] == [
        (2, "completed"),
        (1, "completed"),
    ]
    assert [each["position"] for each in found["latest"]["positions"]] == ["200", "201"]
    assert found["latest"]["outstanding"] == ["txn-0-2", "txn-1-2"]
    assert [row["checkpoint_id"] for row in found["timeline"]] == [2, 1]


def test_a_run_that_has_not_ended_in_order_may_be_elsewhere_and_how_one_ended_is_its_phase(shown: Shown) -> None:
    stored_job(shown.folder / "other").end()
    with Shown(shown.folder / "other").server() as server:
        assert document(server)["phase"] == "not running: finished"


def test_a_job_that_runs_is_shown_as_its_coordinator_says(shown: Shown, server: WebServer) -> None:
    shown.described = RUNS
    found = document(server)
    assert (found["phase"], found["runs"]) == ("checkpoint in flight", True)
    [subtask, _] = found["described"]["subtasks"]
    assert subtask["progress"]["open_transaction"] == "t-2"
    assert subtask["progress"]["figures"]["source_num_dead_letters"] == [
        {"labels": ["orders", "map(priced)"], "value": 2}
    ]
    assert found["graph"] == GRAPH
    assert (found["settings"], found["versions"]) == ({"parallelism": "2"}, {"python": "3.11"})


def test_a_coordinator_that_does_not_answer_hides_nothing_of_the_ledger(shown: Shown, server: WebServer) -> None:
    shown.error = Unavailable("the coordinator is too busy to answer: ask again")
    found = document(server)
    assert found["problem"] == "the coordinator is too busy to answer: ask again"
    assert len(found["checkpoints"]) == 2


def test_a_ledger_that_cannot_be_read_is_said_and_hides_nothing_of_the_run(shown: Shown, server: WebServer) -> None:
    shown.described = RUNS
    for entry in (shown.folder / CHECKPOINTS / JOB).rglob("*.json"):
        entry.write_bytes(b"not what was stored")
    found = document(server)
    assert "ledger" in found["problem"]
    assert found["described"]["attempt"] == RUNS.attempt


def test_a_ledger_is_read_again_when_its_job_has_moved_and_at_times(shown: Shown) -> None:
    stored = stored_job(shown.folder / "elsewhere")
    shown = Shown(shown.folder / "elsewhere", RUNS)
    jobs = shown.jobs()

    def newest() -> int:
        return int(jobs.document(JOB)["checkpoints"][0]["checkpoint_id"])

    assert newest() == 2
    stored.checkpoint()
    shown.now += LEAST_SECONDS
    assert newest() == 2
    shown.described = replace(RUNS, completed=RUNS.completed + 1)
    assert newest() == 3
    stored.checkpoint()
    shown.described = replace(RUNS, completed=RUNS.completed + 2)
    assert newest() == 3
    shown.now += MOST_SECONDS
    assert newest() == 4


def test_checkpoints_that_were_read_are_not_read_again(shown: Shown) -> None:
    stored = stored_job(shown.folder / "elsewhere")
    shown = Shown(shown.folder / "elsewhere")
    jobs = shown.jobs()
    assert [row["checkpoint_id"] for row in jobs.document(JOB)["timeline"]] == [2, 1]
    stored.checkpoint()
    (stored.folder / metadata_path(CheckpointId(1))).write_bytes(b"not read")
    shown.now += MOST_SECONDS
    assert [row["checkpoint_id"] for row in jobs.document(JOB)["timeline"]] == [3, 2, 1]


def test_which_jobs_there_are_is_asked_at_times_only(shown: Shown) -> None:
    jobs, asked_for = shown.jobs(), []

    def names() -> list[str]:
        asked_for.append(JOB)
        return [JOB]

    jobs.names = names
    for _ in range(3):
        jobs.require(JOB)
    assert len(asked_for) == 1
    shown.now += MOST_SECONDS
    jobs.overview()
    assert len(asked_for) == 2


def test_the_state_of_a_key_is_read_from_the_latest_checkpoint(server: WebServer) -> None:
    of_job = f"/api/jobs/{JOB}"
    assert asked(server.address, f"{of_job}/states") == (
        200,
        {"checkpoint_id": 2, "states": [{"state": "count", "serde": ""}]},
    )
    status, found = asked(server.address, f"{of_job}/state?state=count&key=LGA")
    assert (status, found["checkpoint_id"]) == (200, 2)
    assert [(each["partition"], each["value_base64"]) for each in found["entries"]] == [(0, "Mw=="), (1, "Mw==")]
    assert asked(server.address, f"{of_job}/state?state=count&key=4c4741&as=hex") == (200, found)
    assert asked(server.address, f"{of_job}/state?state=count&key=none")[1]["entries"] == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("none", "there is no job 'none' here; there are flights"),
        ("none/events", "there is no job 'none' here; there are flights"),
        (f"{JOB}/state?state=sum&key=LGA", "sum"),
        (f"{JOB}/state?state=count&key=LGA&as=octal", "as='octal' is none of text, json, hex, base64"),
        (f"{JOB}/state?state=count&key=LGA&as=hex", "the key 'LGA' is not hex"),
        (f"{JOB}/letters?topic=in", "twopc dead-letters list in"),
    ],
)
def test_what_there_is_not_is_a_problem_with_its_text(server: WebServer, path: str, problem: str) -> None:
    status, found = asked(server.address, f"/api/jobs/{path}")
    assert status == 404
    assert problem in found["problem"]


def test_brokers_that_do_not_answer_are_a_problem_too(shown: Shown, server: WebServer) -> None:
    assert asked(server.address, f"/api/jobs/{JOB}/letters?topic=wrong") == (200, [])
    shown.letters = [{"letter": "wrong[0]@3"}]
    assert asked(server.address, f"/api/jobs/{JOB}/letters?topic=wrong") == (200, [{"letter": "wrong[0]@3"}])


def test_a_job_is_told_again_when_it_has_moved_and_only_then(
    shown: Shown, server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(pages, "BEAT_SECONDS", 0.1)
    connection = http.client.HTTPConnection(server.address, timeout=60)
    connection.request("GET", f"/api/jobs/{JOB}/events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    first = json.loads(answer.readline().removeprefix(b"data: "))
    assert (first["phase"], answer.readline()) == ("no run found here", b"\n")
    shown.described = RUNS
    assert json.loads(answer.readline().removeprefix(b"data: "))["phase"] == "checkpoint in flight"
    assert answer.readline() == b"\n"
    assert answer.readline() == b": nothing has moved\n"
    connection.close()


def test_a_job_is_asked_once_a_tick_however_many_look(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "TICK_SECONDS", 60.0)
    asked_for: list[str] = []
    jobs = shown.jobs()
    jobs.describe = asked_for.append
    ui = pages.UiPages(jobs)
    for _ in range(3):
        stream = ui.answer(Question(f"/api/jobs/{JOB}/events"))
        assert isinstance(stream, EventStream)
        assert next(stream.events).startswith(b"data: ")
    assert asked_for == [JOB]


def test_every_file_of_the_page_is_served_and_comes_from_here(server: WebServer) -> None:
    for path in ("/", "/page.css", "/page.js", "/graph.js", "/timeline.js", "/table.js"):
        connection = http.client.HTTPConnection(server.address, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        connection.close()
