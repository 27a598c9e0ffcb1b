from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from twopc.config import RunSettings
from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.protocol.codec import from_json, to_json


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("500ms", 500),
        ("2s", 2_000),
        ("1.5 m", 90_000),
        ("1H", 3_600_000),
        ("1d", 86_400_000),
        (timedelta(seconds=3), 3_000),
    ],
)
def test_a_duration_is_a_number_and_its_unit(written: Any, milliseconds: int) -> None:
    assert duration_ms(written) == milliseconds


@pytest.mark.parametrize("written", ["500", "", "ms", "-1s", "1w", "0.5ms", 500, None, "1s 2ms"])
def test_anything_else_is_not_a_duration(written: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a (duration|whole number of milliseconds)"):
        duration_ms(written)


def test_a_keyword_comes_before_the_environment_and_that_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_PARALLELISM", "3")
    monkeypatch.setenv("TWOPC_CHECKPOINT_DIR", "/from/environment")
    settings = RunSettings.resolve(parallelism=5)
    assert (settings.parallelism, settings.checkpoint_dir, settings.checkpoint_interval_ms) == (
        5,
        "/from/environment",
        1_000,
    )


def test_a_keyword_of_none_and_an_empty_variable_count_as_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_PARALLELISM", "3")
    monkeypatch.setenv("TWOPC_CHECKPOINT_INTERVAL", "")
    assert RunSettings.resolve(parallelism=None, checkpoint_interval=None) == RunSettings(parallelism=3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"checkpoint_interval": "2s"}, RunSettings(checkpoint_interval_ms=2_000)),
        ({"checkpoint_interval_ms": 2_000}, RunSettings(checkpoint_interval_ms=2_000)),
        ({"transaction_timeout": "1m"}, RunSettings(transaction_timeout_ms=60_000)),
        ({"until_end": True}, RunSettings(until_end=True)),
    ],
)
def test_a_setting_goes_by_these_names(given: dict[str, Any], expected: RunSettings) -> None:
    assert RunSettings.resolve(**given) == expected


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("No", False), ("off", False)])
def test_the_environment_can_set_a_switch(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv("TWOPC_UNTIL_END", text)
    assert RunSettings.resolve().until_end is value


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b"), "a, b,"])
def test_several_values_are_a_list_or_text_with_commas(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert RunSettings.resolve(drop_inputs=given).drop_inputs == ("a", "b")
    monkeypatch.setenv("TWOPC_DROP_STATES", "a, b,")
    assert RunSettings.resolve().drop_states == ("a", "b")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"paralelism": 2}, "there is no setting 'paralelism': did you mean parallelism?"),
        ({"xyzzy": 2}, "there is no setting 'xyzzy': there are .*parallelism"),
        ({"parallelism": "two"}, "parallelism: 'two' is not a whole number"),
        ({"parallelism": 1.5}, "parallelism: 1.5 is not a whole number"),
        ({"parallelism": True}, "parallelism: True is not a whole number"),
        ({"parallelism": 0}, "parallelism must be at least 1"),
        ({"checkpoint_interval": 500}, "checkpoint_interval: 500 is not a duration: .*500ms"),
        ({"checkpoint_interval": "1s", "checkpoint_interval_ms": 5}, "checkpoint_interval.* say the same thing"),
        ({"until_end": "maybe"}, "until_end: 'maybe' is not true or false"),
        ({"bootstrap_servers": ["a:1"]}, "bootstrap_servers: .* is not text"),
        ({"drop_inputs": 7}, "drop_inputs: 7 is not a list of texts"),
        ({"drop_inputs": ["a", 7]}, "drop_inputs: .* is not a list of texts"),
        ({"checkpoint_inline_bytes": -1}, "checkpoint_inline_bytes must be from 0 to 65536, but is -1"),
        ({"checkpoint_inline_bytes": 65_537}, "checkpoint_inline_bytes .* larger state belongs in files"),
        ({"host": "cloud"}, "host must be one of spark, process, inline, but is 'cloud'"),
    ],
)
def test_a_setting_that_can_not_work_is_named(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        RunSettings.resolve(**given)


def test_a_variable_that_can_not_work_is_named_as_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_CHECKPOINT_INTERVAL", "often")
    with pytest.raises(ConfigurationError, match="TWOPC_CHECKPOINT_INTERVAL: 'often' is not a duration"):
        RunSettings.resolve()


def test_settings_survive_the_way_to_a_worker() -> None:
    settings = RunSettings(parallelism=4, coordinator="host:1", until_end=True)
    assert from_json(RunSettings, to_json(settings)) == settings


@pytest.mark.parametrize(("parallelism", "each"), [(1, 20_480), (25, 20_480), (32, 16_384), (512, 1_024), (600_000, 0)])
def test_many_subtasks_share_the_room_for_state_in_the_metadata(parallelism: int, each: int) -> None:
    assert RunSettings().inline_bytes(parallelism) == each


def test_paths_mean_the_same_after_a_job_has_changed_its_working_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = RunSettings.resolve(checkpoint_dir="cp", kafka_config="../access", coordinator_ca="/ca")
    assert (settings.checkpoint_dir, settings.kafka_config, settings.coordinator_ca, settings.coordinator_key) == (
        *(f"{tmp_path}/cp", f"{tmp_path}/../access", "/ca"),
        "",
    )
    assert RunSettings(checkpoint_dir="s3://bucket/cp").checkpoint_dir == "s3://bucket/cp"


@pytest.mark.parametrize("url", ["ftp://host:9000/c", "ftp:/b/c"])
def test_a_url_of_a_scheme_that_no_store_has_is_refused_with_those_that_can_be_used(url: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"{url}'.*path of a folder.*or a URL of.*: file:, s3:, gs:, az:, hdfs:"
    ):
        RunSettings(checkpoint_dir=url)


@pytest.mark.parametrize(
    "arguments", [["-c", "from twopc.connect import RunSettings; RunSettings()"], ["-m", "twopc", "version"]]
)
def test_nothing_runs_with_assertions_left_out(arguments: list[str]) -> None:
    command = [sys.executable, "-O", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode != 0
    assert "twopc needs its assertions" in ended.stderr
