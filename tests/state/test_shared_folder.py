"""A machine on which the checkpoint folder is not the coordinator's."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path

import pytest

from coordinator.ledger import Ledger
from twopc.errors import Unavailable
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.state import shared_folder
from twopc.state.shared_folder import require_shared
from twopc.storage.local import LocalStore


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_folder, "PATIENCE_SECONDS", 0.0)


def start(folder: Path, attempt: int) -> None:
    """Store the record of an attempt, as the coordinator does."""
    settings = CheckpointSettings(1_000, 60_000)
    Ledger("job", LocalStore(folder / "job")).store(AttemptStarted(AttemptId(attempt), 1, settings, CheckpointId(0), 0))


def refusal(folder: Path, attempt: int) -> str:
    with pytest.raises(Unavailable) as caught:
        require_shared(LocalStore(folder), "job", AttemptId(attempt))
    assert re.search(r"--checkpoint-dir one folder that all machines share", str(caught.value))
    return str(caught.value)


def test_the_folder_with_the_record_of_the_attempt_is_the_coordinators(tmp_path: Path) -> None:
    start(tmp_path, 1)
    require_shared(LocalStore(tmp_path), "job", AttemptId(1))
    start(tmp_path, 2)
    require_shared(LocalStore(tmp_path), "job", AttemptId(1))


def test_a_folder_that_is_not_there_is_named_with_the_host_and_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    assert refusal(folder, 1).startswith(f"{socket.gethostname()}:{folder / 'job'} is not there")
    assert not folder.exists()


def test_a_folder_with_an_older_ledger_is_another(tmp_path: Path) -> None:
    start(tmp_path, 1)
    assert "its ledger ends with attempt 1, and this is attempt 2" in refusal(tmp_path, 2)


def test_a_record_that_is_seen_a_little_later_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_folder, "PATIENCE_SECONDS", 60.0)
    later = threading.Timer(0.5, start, (tmp_path, 1))
    later.start()
    try:
        require_shared(LocalStore(tmp_path), "job", AttemptId(1))
    finally:
        later.join()
