"""The ports of a process: one for metrics, one for its page, or one for both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from twopc.errors import ConfigurationError
from twopc.web.answer import Pages
from twopc.web.door import Door, is_loopback
from twopc.web.server import WebServer

LOOPBACK = "127.0.0.1"
"""Where they are served if nothing else is said."""


@dataclass(frozen=True, slots=True)
class PagePorts:
    """Host and port of each; no port: it is not served. Raises ConfigurationError for a page that all could read."""

    metrics: tuple[str, int | None]
    ui: tuple[str, int | None]
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.shows_ui and not self.token and not is_loopback(self.ui[0]):
            raise ConfigurationError(
                f"the page shows state and dead letters, and on {self.ui[0]} others reach it: set TWOPC_UI_TOKEN to "
                "a token that opens it, or leave it on loopback (--ui-host 127.0.0.1)"
            )

    @property
    def are_named(self) -> bool:
        """Whether anything is served."""
        return self.metrics[1] is not None or self.shows_ui

    @property
    def shows_ui(self) -> bool:
        return self.ui[1] is not None

    @contextmanager
    def served(self, metrics: Pages | None, ui: Pages | None) -> Iterator[dict[str, str]]:
        """Serve them for as long as the context lasts; give the address of each. The page's port has metrics too."""
        addresses: dict[str, str] = {}
        with ExitStack() as closing:

            def serve(what: str, door: Door, port: int, *pages: Pages | None) -> None:
                server = WebServer(what, door, port, [each for each in pages if each is not None])
                addresses[what] = closing.enter_context(server).address

            (host, port), (ui_host, ui_port) = self.metrics, self.ui
            if ui_port is not None:
                serve("ui", Door(ui_host, self.token), ui_port, ui, metrics)
            if port is not None and port == ui_port != 0 and host == ui_host:
                addresses["metrics"] = addresses["ui"]
            elif port is not None:
                serve("metrics", Door(host), port, metrics)
            yield addresses
