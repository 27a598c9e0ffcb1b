"""Where reports are written is looked at before what they report is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from twopc import cli
from twopc.cli.output import check_target
from twopc.errors import ConfigurationError


def test_a_new_file_and_one_that_is_there_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "old.xml").touch()
    for path in (None, tmp_path / "new.xml", tmp_path / "old.xml", Path("here.xml")):
        check_target("--junit", path)


@pytest.mark.parametrize("name", ["no-such-folder/page.xml", "."])
def test_a_file_that_can_not_be_written_is_named_with_its_option(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="--junit"):
        check_target("--junit", tmp_path / name)


def test_a_run_whose_report_has_no_such_form_is_a_usage_error() -> None:
    answer = CliRunner().invoke(cli.app, ["run", "job.py", "-o", "yaml"])
    assert answer.exit_code == 2
    assert "'text', 'json'" in answer.stderr
