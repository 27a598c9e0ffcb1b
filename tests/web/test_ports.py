"""One port, or two, or none: where metrics and the page are served, and that no stranger reads the page."""

from __future__ import annotations

import http.client

import pytest

from twopc.errors import ConfigurationError
from twopc.testing.ports import free_port
from twopc.web.answer import Answer, Pages, Question
from twopc.web.ports import PagePorts

HERE = "127.0.0.1"


class OnePage(Pages):
    """Answers with its own path."""

    names = ("",)

    def __init__(self, path: str) -> None:
        self.names = (path,)

    def answer(self, question: Question) -> Answer | None:
        return Answer.of_text(question.path) if question.path in self.names else None


METRICS, UI = OnePage("/metrics"), OnePage("/")


def statuses(address: str, **headers: str) -> list[int]:
    """Return those of both pages at an address."""
    found = []
    for path in ("/", "/metrics"):
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", path, headers=headers)
        found.append(connection.getresponse().status)
        connection.close()
    return found


def test_the_page_has_metrics_beside_it_and_metrics_alone_have_no_page() -> None:
    with PagePorts((HERE, 0), (HERE, 0)).served(METRICS, UI) as addresses:
        assert statuses(addresses["ui"]) == [200, 200]
        assert statuses(addresses["metrics"]) == [404, 200]


def test_one_port_may_be_named_for_both() -> None:
    port = free_port()
    with PagePorts((HERE, port), (HERE, port)).served(METRICS, UI) as addresses:
        assert addresses["ui"] == addresses["metrics"] == f"{HERE}:{port}"
        assert statuses(addresses["ui"]) == [200, 200]


def test_without_a_port_nothing_is_served() -> None:
    ports = PagePorts((HERE, None), (HERE, None))
    assert not ports.are_named
    with ports.served(METRICS, None) as addresses:
        assert addresses == {}


def test_the_token_is_for_the_page_and_not_for_metrics_of_their_own() -> None:
    with PagePorts((HERE, 0), (HERE, 0), "t0ken").served(METRICS, UI) as addresses:
        assert statuses(addresses["ui"]) == [401, 401]
        assert statuses(addresses["ui"], Authorization="Bearer t0ken") == [200, 200]
        assert statuses(addresses["metrics"]) == [404, 200]


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "::", "elsewhere.example"])
def test_a_page_that_others_reach_wants_a_token(host: str) -> None:
    with pytest.raises(ConfigurationError, match="set TWOPC_UI_TOKEN"):
        PagePorts((HERE, None), (host, 8080))
    PagePorts((HERE, None), (host, 8080), "t0ken")
    PagePorts((host, 9249), (HERE, 8080))
