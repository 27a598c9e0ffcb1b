"""What is answered over HTTP: metrics and health, and to whom."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.metrics.kit import RUNNING, ScrapedMetrics
from twopc.errors import ConfigurationError
from twopc.metrics.health import Health
from twopc.metrics.jobs import JobMetrics
from twopc.metrics.pages import MetricsPages
from twopc.web.answer import Answer, EventStream, Pages, Question
from twopc.web.door import Door
from twopc.web.server import CONNECTIONS_MAX, WebServer


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
    server: WebServer
    health: FakeHealth

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text


def served(host: str, health: Health, port: int = 0, token: str = "") -> WebServer:
    """Return a server of metrics and of what moves, at a host."""
    pages = MetricsPages(JobMetrics(lambda: [RUNNING]).registry, health)
    return WebServer("metrics", Door(host, token), port, [pages, Clock()])


class Clock(Pages):
    """Tells two moments."""

    names = ("/clock",)

    def answer(self, question: Question) -> Answer | EventStream | None:
        moments = (b"data: %d\n\n" % number for number in range(2))
        return EventStream(moments) if question.path == "/clock" else None


@pytest.fixture
def site() -> Iterator[Site]:
    health = FakeHealth()
    with served("127.0.0.1", health) as server:
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
    assert text == "there are /metrics, /healthz, /readyz and /clock\n"


def test_events_arrive_one_after_the_other(site: Site) -> None:
    status, headers, text = site.ask("/clock")
    assert (status, headers["Content-Type"], text) == (200, "text/event-stream", "data: 0\n\ndata: 1\n\n")


def test_a_page_of_another_origin_is_told_nothing_and_runs_nothing_here(site: Site) -> None:
    _, headers, _ = site.ask("/metrics", Origin="elsewhere.example")
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")


@pytest.fixture
def locked() -> Iterator[Site]:
    with served("127.0.0.1", FakeHealth(), token="t0ken") as server:
        yield Site(server, FakeHealth())


@pytest.mark.parametrize("told", [{}, {"Authorization": "Bearer other"}, {"Cookie": "twopc-token=other"}])
def test_where_a_token_is_set_nothing_is_told_without_it(locked: Site, told: dict[str, str]) -> None:
    status, _, text = locked.ask("/metrics", **told)
    assert status == 401
    assert "Authorization: Bearer" in text
    assert locked.ask("/metrics?token=other", **told)[0] == 401
    assert locked.ask("/clock", **told)[0] == 401


@pytest.mark.parametrize("told", [{"Authorization": "Bearer t0ken"}, {"Cookie": "other=1; twopc-token=t0ken"}])
def test_who_has_the_token_is_let_in(locked: Site, told: dict[str, str]) -> None:
    assert locked.ask("/metrics", **told)[0] == 200


def test_a_browser_says_the_token_once_and_its_address_forgets_it(locked: Site) -> None:
    status, headers, _ = locked.ask("//elsewhere.example/metrics?token=t0ken")
    assert (status, headers["Location"]) == (303, "/elsewhere.example/metrics")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert locked.ask("/metrics", Cookie=cookie.partition(";")[0])[0] == 200


@pytest.mark.parametrize("path", ["//elsewhere.example/", "/\\elsewhere.example/", "///\\/elsewhere.example/"])
def test_who_says_the_token_stays_on_this_server(locked: Site, path: str) -> None:
    assert locked.ask(f"{path}?token=t0ken")[1]["Location"] == "/elsewhere.example/"


def test_a_path_adds_no_header_to_the_answer(locked: Site) -> None:
    _, headers, _ = locked.ask("/%0d%0aX-Forged:%20yes?token=t0ken")
    assert "X-Forged" not in headers


def test_health_is_told_without_a_token(locked: Site) -> None:
    assert [locked.ask(path)[0] for path in ("/healthz", "/readyz")] == [200, 200]


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
    with served("0.0.0.0", FakeHealth()) as server:
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
        served("127.0.0.1", FakeHealth(), port)
