"""Metrics and health over HTTP."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from tests.metrics.kit import IDLE, RUNNING, ScrapedMetrics
from twopc.errors import ConfigurationError, Unavailable
from twopc.metrics.health import CoordinatorHealth, DriverHealth, Health
from twopc.metrics.jobs import JobMetrics
from twopc.metrics.server import CONNECTIONS_MAX, MetricsServer
from twopc.protocol.job_description import JobDescription


@dataclass
class FakeHealth(Health):
    """Is what a test says it is."""

    live_problem: str = ""
    ready_problem: str = ""

    def live(self) -> str:
        return self.live_problem

    def ready(self) -> str:
        return self.ready_problem


@dataclass
class Site:
    server: MetricsServer
    health: FakeHealth

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text


@pytest.fixture
def site() -> Iterator[Site]:
    health = FakeHealth()
    with MetricsServer("127.0.0.1", 0, JobMetrics(lambda: [RUNNING]).registry, health) as server:
        yield Site(server, health)


def test_metrics_are_prometheus_text(site: Site) -> None:
    status, headers, text = site.ask("/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    assert ScrapedMetrics(text).value("twopc_job_attempt", job_name="flights") == 3


def test_who_asks_for_openmetrics_gets_it(site: Site) -> None:
    _, headers, text = site.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(("path", "problem"), [("/healthz", "live_problem"), ("/readyz", "ready_problem")])
def test_health_is_a_status_that_says_what_is_wrong(site: Site, path: str, problem: str) -> None:
    assert site.ask(path)[::2] == (200, "ok\n")
    setattr(site.health, problem, "1 of 2 subtasks are attached")
    assert site.ask(path)[::2] == (503, "1 of 2 subtasks are attached\n")


def test_any_other_path_says_what_there_is(site: Site) -> None:
    status, _, text = site.ask("/../etc/passwd")
    assert status == 404
    assert "/metrics" in text


def test_nothing_can_be_changed(site: Site) -> None:
    assert [site.ask("/metrics", method)[0] for method in ("POST", "PUT", "DELETE")] == [501, 501, 501]


def test_who_only_wants_the_head_gets_no_body(site: Site) -> None:
    status, headers, text = site.ask("/metrics", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:9"])
def test_on_loopback_it_answers_to_names_of_loopback(site: Site, host: str) -> None:
    assert site.ask("/metrics", Host=host)[0] == 200


@pytest.mark.parametrize("host", ["elsewhere.example", "10.0.0.5", ""])
def test_on_loopback_it_answers_to_no_other_name(site: Site, host: str) -> None:
    assert site.ask("/metrics", Host=host)[0] == 403


def test_beyond_loopback_it_answers_to_any_name() -> None:
    with MetricsServer("0.0.0.0", 0, JobMetrics(lambda: ()).registry, FakeHealth()) as server:
        address = f"127.0.0.1:{server.address.rpartition(':')[2]}"
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", "/healthz", headers={"Host": "elsewhere.example"})
        assert connection.getresponse().status == 200
        connection.close()


def test_silent_connections_do_not_add_up(site: Site) -> None:
    host, _, port = site.server.address.partition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(CONNECTIONS_MAX + 1)]
    silent[-1].settimeout(60)
    assert silent[-1].recv(1) == b""
    for each in silent:
        each.close()


def test_a_port_in_use_is_said_so(site: Site) -> None:
    port = int(site.server.address.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match="--metrics-port"):
        MetricsServer("127.0.0.1", port, JobMetrics(lambda: ()).registry, FakeHealth())


def silent() -> Sequence[JobDescription]:
    raise Unavailable("the coordinator is too busy to answer: ask again")


def test_a_coordinator_is_well_while_its_one_thread_answers() -> None:
    assert (CoordinatorHealth(lambda: ()).live(), CoordinatorHealth(lambda: ()).ready()) == ("", "")
    assert "does not answer" in CoordinatorHealth(silent).live()
    assert "does not answer" in CoordinatorHealth(silent).ready()


def test_a_driver_is_ready_while_all_subtasks_are_attached() -> None:
    attached = replace(RUNNING, subtasks=tuple(replace(each, attached=True) for each in RUNNING.subtasks))
    assert DriverHealth(lambda: [attached]).ready() == ""
    assert DriverHealth(lambda: [RUNNING]).ready() == "1 of 2 subtasks are attached"
    assert DriverHealth(lambda: [IDLE]).ready() == "no attempt has been started"
    assert DriverHealth(lambda: ()).ready() == "no attempt has been started"


def test_a_driver_whose_coordinator_is_away_is_alive_and_not_ready() -> None:
    assert DriverHealth(silent).live() == ""
    assert "does not answer" in DriverHealth(silent).ready()
