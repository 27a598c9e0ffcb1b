"""The folder in which a subtask runs in a Python worker of Spark: relative names of files are meant in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twopc.config import RunSettings
from twopc.runtime.spec import SubtaskSpec
from twopc.spark import task
from twopc.spark.configuration import LAY_FILES
from twopc.spark.launch import SparkSubtasks
from twopc.spark.task import host_function

Ran = Callable[[Path | None], Path]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ran:
    """Run a subtask whose functions go to the root; return the folder that it began in."""
    executors = tmp_path / "executor"
    executors.mkdir()
    monkeypatch.chdir(executors)
    monkeypatch.setattr(task, "from_json", lambda *_: SimpleNamespace(subtask=0, settings=RunSettings()))
    monkeypatch.setattr(task, "BarrierTaskContext", SimpleNamespace(get=lambda: SimpleNamespace(partitionId=lambda: 0)))
    monkeypatch.setattr(task, "end_with_parent", lambda: None)
    monkeypatch.setattr(task, "end_forked_with_this", lambda: None)

    def run(folder: Path | None) -> Path:
        began: list[Path] = []

        def run_subtask(load: Callable[[], object], _spec: SubtaskSpec) -> None:
            load()
            began.append(Path.cwd())
            os.chdir("/")

        monkeypatch.setattr(task, "run_subtask", run_subtask)
        job = cast("Any", SimpleNamespace(load=lambda: None))
        list(host_function(job, [{}], folder=folder)(iter(())))
        assert Path.cwd() == executors, "the worker serves other jobs"
        return began[0]

    return run


def test_a_subtask_begins_in_the_folder_where_its_run_was_started(ran: Ran, tmp_path: Path) -> None:
    assert ran(tmp_path) == tmp_path


def test_a_subtask_begins_where_spark_does_on_a_host_without_that_folder(ran: Ran, tmp_path: Path) -> None:
    assert ran(tmp_path / "nowhere") == tmp_path / "executor"


@pytest.mark.parametrize("setting", LAY_FILES)
def test_a_subtask_begins_where_spark_lays_the_files_that_a_user_sends(setting: str, tmp_path: Path) -> None:
    def folder(conf: dict[str, str]) -> Path | None:
        stage = SparkSubtasks.__new__(SparkSubtasks)
        stage._session = cast("Any", SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf)))
        stage._job = cast("Any", SimpleNamespace(folder=tmp_path))
        return stage._folder()

    assert folder({}) == tmp_path
    assert folder({setting: "words.zip"}) is None
