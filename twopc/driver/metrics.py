"""A driver's metrics and health, served while its run lasts, where the settings name a port."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from twopc import events
from twopc.config import RunSettings
from twopc.driver.embedded import CoordinatorAddress
from twopc.protocol.job_description import JobDescription
from twopc.rpc.admin_client import AdminClient

PATIENCE_SECONDS = 5.0
"""Less than a scraper waits: it is to hear that the coordinator does not answer."""

log = logging.getLogger(__name__)

OnEvent = Callable[[events.Event], None]


@contextmanager
def metrics_served(settings: RunSettings, coordinator: CoordinatorAddress, job: str) -> Iterator[OnEvent | None]:
    """Serve them; give what has to be told of every event of the job. Nothing where no port is set."""
    if settings.metrics_port is None:
        yield None
        return
    # No run without a port pays for it.
    from twopc.metrics.health import DriverHealth
    from twopc.metrics.jobs import JobMetrics
    from twopc.metrics.server import MetricsServer

    with ExitStack() as closing:
        describe = coordinator.describe
        if describe is None:
            describe = _asking(closing.enter_context(_client(coordinator)), job)
        metrics = JobMetrics(describe)
        health = DriverHealth(describe)
        server = MetricsServer(settings.metrics_host, settings.metrics_port, metrics.registry, health)
        closing.enter_context(server)
        log.info("metrics of job %s are at %s/metrics", job, server.address)
        yield metrics.note


def _client(coordinator: CoordinatorAddress) -> AdminClient:
    return AdminClient(coordinator.address, token=coordinator.token, tls=coordinator.tls, seconds=PATIENCE_SECONDS)


def _asking(client: AdminClient, job: str) -> Callable[[], tuple[JobDescription, ...]]:
    return lambda: (client.describe(job),)


def combined_listener(first: OnEvent | None, second: OnEvent | None) -> OnEvent | None:
    """Return what tells both of an event."""
    if first is None or second is None:
        return first or second

    def tell(event: events.Event) -> None:
        second(event)
        first(event)

    return tell
