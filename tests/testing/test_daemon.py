"""A server of the kit as a process: what it has of the environment, how it ends, and when it is waited for in vain."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from twopc.errors import Unavailable
from twopc.testing.daemon import Daemon, await_servers, inherited_environment

SERVES = "import os, time; print(sorted(os.environ), os.getcwd(), flush=True); time.sleep(100)"


class Server(Daemon):
    def start(self, program: str) -> None:
        self._begin([sys.executable, "-c", program])


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "server", {"GIVEN": "yes"})


def test_it_works_in_its_folder_with_what_it_is_given_only_and_logs_there(server: Server) -> None:
    server.start(SERVES)
    await_servers("it", [server], lambda: server.log.read_text().endswith("\n"), 60)
    server.kill()
    assert "'GIVEN'" in server.log.read_text()
    assert "'HOME'" not in server.log.read_text()
    assert str(server.folder) in server.log.read_text()


def test_it_can_be_started_again_after_it_was_killed(server: Server) -> None:
    for _ in range(2):
        server.start(SERVES)
        assert server.pid is not None
        server.kill()
        assert server.pid is None


def test_who_waits_for_one_that_has_ended_is_told_where_its_log_is(server: Server) -> None:
    server.start("raise SystemExit(3)")
    with pytest.raises(Unavailable, match=r"it did not start; .*server/log say why"):
        await_servers("it", [server], lambda: False, 60)


def test_who_waits_too_long_is_told_too(server: Server) -> None:
    server.start(SERVES)
    with pytest.raises(Unavailable, match="did not start"):
        await_servers("it", [server], lambda: False, 0)
    server.kill()


def test_a_server_inherits_nothing_that_a_job_is_told_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_CHECKPOINT_DIR", "elsewhere")
    monkeypatch.setenv("LANG", "C.UTF-8")
    inherited = inherited_environment()
    assert "TWOPC_CHECKPOINT_DIR" not in inherited
    assert inherited["LANG"] == "C.UTF-8"
