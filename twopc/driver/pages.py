"""What a driver tells of its run while that lasts, where the settings want it: metrics, health, the page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from twopc import events
from twopc.config import RunSettings
from twopc.driver.embedded import CoordinatorAddress
from twopc.graph import JobDefinition
from twopc.protocol.job_description import JobDescription
from twopc.rpc.admin_client import AdminClient
from twopc.storage.store import CheckpointStore

if TYPE_CHECKING:
    from twopc.ui.jobs import Jobs

PATIENCE_SECONDS = 5.0
"""Less than a scraper waits: it is to hear that the coordinator does not answer."""

log = logging.getLogger(__name__)

OnEvent = Callable[[events.Event], None]
DescribeAll = Callable[[], tuple[JobDescription, ...]]


@contextmanager
def pages_served(
    settings: RunSettings, coordinator: CoordinatorAddress, definition: JobDefinition, store: CheckpointStore
) -> Iterator[OnEvent | None]:
    """Serve or send them; give what has to be told of every event of the job. Nothing where nothing is wanted."""
    if settings.metrics_port is None and settings.ui_port is None and not settings.otlp_metrics:
        yield None
        return
    # No run without them pays for it.
    from twopc.metrics.health import DriverHealth
    from twopc.metrics.jobs import JobMetrics
    from twopc.metrics.pages import MetricsPages
    from twopc.web.ports import PagePorts

    metrics_at, ui_at = (settings.metrics_host, settings.metrics_port), (settings.ui_host, settings.ui_port)
    ports = PagePorts(metrics_at, ui_at, settings.ui_token)
    with ExitStack() as closing:
        describe = coordinator.describe
        if describe is None:
            describe = _asking(closing.enter_context(_client(coordinator)), definition.name)
        metrics = JobMetrics(describe)
        of_metrics = MetricsPages(metrics.registry, DriverHealth(describe))
        listeners: list[OnEvent] = [metrics.note]
        of_ui = None
        if ports.shows_ui:
            from twopc.ui.pages import UiPages

            jobs = _jobs(settings, definition, store, describe)
            of_ui = UiPages(jobs)
            listeners.append(jobs.traces.note)
        if settings.otlp_metrics:
            from twopc.tracing.otlp_metrics import metrics_sent

            closing.enter_context(metrics_sent(metrics.registry.collect))
        addresses = closing.enter_context(ports.served(of_metrics, of_ui))
        if "ui" in addresses:
            log.info("job %s is shown at http://%s/", definition.name, addresses["ui"])
        if "metrics" in addresses:
            log.info("metrics of job %s are at %s/metrics", definition.name, addresses["metrics"])
        yield teller(*listeners)


def _jobs(settings: RunSettings, definition: JobDefinition, store: CheckpointStore, describe: DescribeAll) -> Jobs:
    from twopc.ui.document import OwnFacts
    from twopc.ui.jobs import Jobs, described_in
    from twopc.ui.letters import DeadLetters
    from twopc.ui.versions import versions

    name, letters = definition.name, DeadLetters.of(definition, settings)
    facts = OwnFacts(definition.to_json(), settings.told(), versions(), letters.names)
    return Jobs(store, lambda: [name], lambda job: described_in(describe(), job), facts, letters.newest)


def _client(coordinator: CoordinatorAddress) -> AdminClient:
    return AdminClient(coordinator.address, token=coordinator.token, tls=coordinator.tls, seconds=PATIENCE_SECONDS)


def _asking(client: AdminClient, job: str) -> DescribeAll:
    return lambda: (client.describe(job),)


def teller(*listeners: OnEvent | None) -> OnEvent | None:
    """Return what tells all of those that there are of an event; None where there is none."""
    told = [each for each in listeners if each is not None]
    if not told:
        return None

    def tell(event: events.Event) -> None:
        for listener in told:
            listener(event)

    return tell
