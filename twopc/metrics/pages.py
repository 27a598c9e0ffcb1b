"""The pages of metrics and health."""

from __future__ import annotations

from http import HTTPStatus

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from twopc.metrics.health import Health
from twopc.web.answer import Answer, Pages, Question


class MetricsPages(Pages):
    """Whoever reaches the server may ask for health, which says nothing that only friends may know."""

    names = ("/metrics", "/healthz", "/readyz")
    open_names = ("/healthz", "/readyz")

    def __init__(self, registry: CollectorRegistry, health: Health) -> None:
        self._registry = registry
        self._health = health

    def answer(self, question: Question) -> Answer | None:
        match question.path:
            case "/metrics":
                encode, content_type = choose_encoder(question.accept)
                return Answer(encode(self._registry), content_type)
            case "/healthz":
                return _told(self._health.live())
            case "/readyz":
                return _told(self._health.ready())
            case _:
                return None


def _told(wrong: str) -> Answer:
    return Answer.of_text(wrong or "ok", HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK)
