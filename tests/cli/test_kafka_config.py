"""The file that says how a command gets at brokers with TLS or a login."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.errors import ConfigurationError
from twopc.kafka.clients.config_file import read_kafka_config


def written(folder: Path, text: str) -> Path:
    file = folder / "kafka.properties"
    file.write_text(text, "utf-8")
    return file


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        read_kafka_config(written(folder, text))
    return str(refused.value)


def test_without_a_file_there_are_no_settings() -> None:
    assert read_kafka_config(None) == {}


def test_settings_are_read_as_they_stand_and_comments_are_passed_over(tmp_path: Path) -> None:
    text = "# who we are\n\n security.protocol = SASL_PLAINTEXT \n! old\nsasl.password=a=b #c\n"
    assert read_kafka_config(written(tmp_path, text)) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.password": "a=b #c",
    }


def test_a_refused_line_is_named_by_number_and_never_quoted(tmp_path: Path) -> None:
    message = refusal(tmp_path, "# login\nsasl.password: hunter2\n")
    assert "line 2" in message
    assert "hunter2" not in message


def test_a_setting_that_no_client_here_knows_is_refused_with_those_that_are(tmp_path: Path) -> None:
    message = refusal(tmp_path, "sasl.jaas.config=hunter2\n")
    assert "'sasl.jaas.config' is not one of" in message
    assert "sasl.password" in message
    assert "hunter2" not in message


def test_brokers_are_named_elsewhere(tmp_path: Path) -> None:
    assert "--bootstrap-servers" in refusal(tmp_path, "bootstrap.servers=broker:9092\n")


def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, f"ssl.ca.location={tmp_path / 'ca.pem'}\n")
    assert "ssl.ca.location" in message
    assert "ca.pem" in message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere can't be read: No such file"):
        read_kafka_config(tmp_path / "nowhere")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"binary can't be read: it is not text"):
        read_kafka_config(tmp_path / "binary")


def test_a_certificate_in_a_line_gets_its_lines_back(tmp_path: Path) -> None:
    assert read_kafka_config(written(tmp_path, "ssl.ca.pem=BEGIN\\nABC\\nEND\\n")) == {
        "ssl.ca.pem": "BEGIN\nABC\nEND\n"
    }
