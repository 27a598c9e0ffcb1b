"""A misspelt variable of the environment is named, with what it may have meant; those that are read are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import twopc
from twopc.config import name_unknown_variables
from twopc.connect import RunSettings


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("TWOPC_PARALELISM", ": did you mean TWOPC_PARALLELISM?"),
        ("TWOPC_CHECKPOINT_INTERVALL", ": did you mean TWOPC_CHECKPOINT_INTERVAL?"),
        ("TWOPC_KAFKA_CONF", ": did you mean TWOPC_KAFKA_CONFIG?"),
        ("TWOPC_ZZZ", ""),
    ],
)
def test_a_variable_that_nothing_reads_is_named(
    variable: str, hint: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(variable, "3")
    for _ in range(2):
        RunSettings.resolve()
    said = [message for message in caplog.messages if variable in message]
    assert said == [f"nothing reads the environment variable {variable}{hint}"], "once in a process"


def test_every_variable_that_the_code_reads_is_known(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    package = Path(twopc.__file__).parent
    files = [*package.rglob("*.py"), *package.with_name("coordinator").rglob("*.py")]
    read = {name for file in files for name in re.findall(r'"(TWOPC_[A-Z_]*[A-Z])"', file.read_text())}
    assert "TWOPC_CHECKPOINT_DIR" in read
    for name in read:
        monkeypatch.setenv(name, "1")
    name_unknown_variables()
    assert [message for message in caplog.messages if "nothing reads" in message] == []
