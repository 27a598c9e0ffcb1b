"""One damage has one name: whoever meets it, a run, a command that reads checkpoints, or a drill, calls it the same."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.checkpoints.damages import cut_half, delete, flip_bit
from tests.driver.test_recovery import FakeSink
from tests.inspect.kit import LEFT, RIGHT, JobWithState
from tests.plain_jobs import in_a_row
from tests.stored_job import JOB, stored_path
from twopc.checkpoints.archive import opened
from twopc.cli.checkpoints import app as checkpoints
from twopc.cli.state import app as state
from twopc.config import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.drill.checkpoint_copy import copy_restorable
from twopc.driver.run import run
from twopc.errors import CheckpointCorrupted
from twopc.operators import StatefulMap
from twopc.protocol.facts import SplitPosition
from twopc.protocol.layout import TWINS
from twopc.serde import Json
from twopc.source import Source, SourcePlanner, SourceReader, Split
from twopc.storage.local import LocalStore

Command = Callable[[Path], str]
Damage = Callable[[Path], None]
SST, MANIFEST, METADATA = "chk-3/subtask-1/*.sst", "chk-3/subtask-1/manifest.json", "chk-3/metadata.json"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder with checkpoints 1 to 3 of a job."""
    job = JobWithState(tmp_path_factory.mktemp("job") / "checkpoints")
    for number in range(1, 4):
        job.put(LEFT, b"LGA", b"%d" % number)
        job.put(RIGHT, b"EWR", b"%d" % number)
        job.checkpoint()
    job.end()
    return job.root


@pytest.fixture
def root(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged, without the second names of the ledger's entries."""
    return Path(shutil.copytree(whole, tmp_path / "checkpoints", ignore=shutil.ignore_patterns(Path(TWINS).name)))


class Restoring(Source, SourcePlanner):
    """Reads on where a checkpoint stands."""

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        return [Split(held.split, held.partition, held.position, None) for held in restored.values()]

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        raise NotImplementedError


def a_run(root: Path) -> str:
    counting = StatefulMap(lambda count, _: (count, count), "count", Json())
    definition = in_a_row(JOB, Restoring(), (counting,), FakeSink([]))
    with pytest.raises(CheckpointCorrupted) as caught:
        run(definition, RunSettings(checkpoint_dir=root.as_uri(), host="inline", parallelism=1))
    return str(caught.value)


def command(app: Any, *arguments: str) -> Command:
    def called(root: Path) -> str:
        result = CliRunner().invoke(app, [*arguments, "--checkpoint-dir", str(root)])
        assert isinstance(result.exception, CheckpointCorrupted), result.output
        return str(result.exception)

    return called


def a_drill(root: Path) -> str:
    try:
        with opened("latest", LocalStore(root), JOB) as located:
            _, damages = copy_restorable(located, LocalStore(root.parent / "copy"))
    except CheckpointCorrupted as error:
        return str(error)
    return "; ".join(damages)


COMMANDS: dict[str, Command] = {
    "run": a_run,
    "checkpoints verify": command(checkpoints, "verify"),
    "checkpoints verify latest": command(checkpoints, "verify", "latest"),
    "checkpoints show": command(checkpoints, "show", "latest"),
    "state list": command(state, "list"),
    "drill": a_drill,
}


def placed(root: Path, name: str) -> Path:
    return stored_path(root / JOB, name) if "subtask" in name else root / JOB / name


def exchange(path: Path) -> None:
    """Put what checkpoint 2 has by this name in its place."""
    other = Path(str(path).replace("chk-3", "chk-2")).read_bytes()
    path.unlink()
    path.write_bytes(other)


def newer_format(path: Path) -> None:
    data = path.read_bytes().replace(b'"format":1', b'"format":2')
    path.unlink()
    path.write_bytes(data)


KINDS: list[tuple[str, Damage, str]] = [
    (MANIFEST, delete, "missing"),
    (SST, delete, "missing"),
    (METADATA, delete, "missing"),
    ("ledger/000000000003.json", delete, "missing"),
    (SST, flip_bit, "damaged"),
    (MANIFEST, flip_bit, "damaged"),
    (METADATA, flip_bit, "damaged"),
    ("ledger/000000000003.json", flip_bit, "damaged"),
    (SST, cut_half, "truncated"),
    (MANIFEST, cut_half, "truncated"),
    (METADATA, cut_half, "truncated"),
    ("ledger/000000000003.json", cut_half, "truncated"),
    (MANIFEST, exchange, "foreign"),
    (METADATA, exchange, "foreign"),
    (MANIFEST, newer_format, "newer format"),
    (METADATA, newer_format, "newer format"),
    ("ledger/000000000003.json", newer_format, "newer format"),
]


@pytest.mark.parametrize(("pattern", "damage", "problem"), KINDS)
def test_one_damage_has_one_name_in_every_command(root: Path, pattern: str, damage: Damage, problem: str) -> None:
    path = placed(root, pattern)
    damage(path)
    name = f"{path.relative_to(root)} is {problem}"
    said = {called: reader(root) for called, reader in COMMANDS.items()}
    assert {called for called, text in said.items() if name not in text} == set(), said


@pytest.mark.parametrize("called", [called for called in COMMANDS if called != "drill"])
def test_damage_names_job_folder_checkpoint_and_what_readers_see_if_one_goes_back(root: Path, called: str) -> None:
    delete(placed(root, SST))
    said = COMMANDS[called](root)
    assert f"job {JOB!r} in {root} is not as it was stored" in said
    assert "copy what is wrong back from a backup" in said
    if called != "checkpoints verify":
        assert said.startswith("checkpoint 3 of job")
        assert "--from 2 " in said
        assert re.search(r"output of this input twice: in\[0\]@200 up to 300, in\[1\]@200 up to 300$", said)


def test_where_no_older_checkpoint_is_kept_only_a_start_anew_is_left(root: Path) -> None:
    delete(placed(root, "chk-1/subtask-0/*.sst"))
    said = command(state, "list", "1")(root)
    assert "--from none" in said
    assert "no older checkpoint" in said


def test_a_damaged_ledger_is_mended_from_a_backup_or_left_for_a_copy(root: Path) -> None:
    delete(root / JOB / "ledger/000000000003.json")
    assert "--from COPY" in COMMANDS["run"](root)
