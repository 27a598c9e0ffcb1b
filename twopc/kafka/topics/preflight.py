"""Checks before a job starts: it fails at once and says why, instead of later or never."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from twopc.config import NO_TIMEOUT_MS, RunSettings
from twopc.errors import ConfigurationError
from twopc.kafka.clients.control_client import ControlClient, TopicInfo

SUBMIT_MS = 30_000
"""The time that starting an attempt may take, beside the waits between attempts."""

INTERNAL_PREFIX = "__"

log = logging.getLogger(__name__)


def bootstrap_servers_of(own: str | None, settings: RunSettings) -> str:
    """Return the servers that a source or sink was given, else the run's."""
    servers = own or settings.bootstrap_servers
    if not servers:
        raise ConfigurationError("no Kafka brokers are named: set bootstrap_servers (--bootstrap-servers HOST:PORT)")
    return servers


def same_brokers(one: str | None, other: str | None) -> bool:
    """Whether two ends of a job are on one cluster by what they were given: None is the run's."""
    return one == other or bool(one and other and _hosts(one) & _hosts(other))


def _hosts(servers: str) -> set[str]:
    return {server.strip() for server in servers.split(",")}


def restart_budget_ms(settings: RunSettings) -> int:
    """Return the longest that all restarts in a row may keep the job down."""
    delay, total = settings.restart_delay_ms, 0
    for _ in range(0 if settings.restart_strategy == "none" else settings.restart_attempts):
        total += delay + SUBMIT_MS // 10
        if settings.restart_strategy == "exponential-delay":
            delay = min(2 * delay, settings.restart_delay_max_ms)
    return total + SUBMIT_MS


def transaction_timeout_ms(settings: RunSettings, client: ControlClient) -> int:
    """Return the time-out for the job's transactions; raise ConfigurationError if it is too long or too short."""
    longest = client.max_transaction_timeout_ms()
    return checked_timeout_ms(settings, longest)


def checked_timeout_ms(settings: RunSettings, longest: int) -> int:
    """Choose and check the time-out, given the brokers' transaction.max.timeout.ms."""
    timeout = longest if settings.transaction_timeout_ms is None else settings.transaction_timeout_ms
    if timeout > longest:
        raise ConfigurationError(
            f"transaction_timeout_ms is {timeout}, but the brokers allow at most transaction.max.timeout.ms={longest}: "
            "lower the first or raise the second"
        )
    needed = settings.checkpoint_interval_ms + settings.checkpoint_timeout_ms + restart_budget_ms(settings)
    if timeout < needed and timeout != NO_TIMEOUT_MS:
        raise ConfigurationError(
            f"the brokers would abort a transaction after {timeout} ms (transaction_timeout_ms, at most their "
            f"transaction.max.timeout.ms={longest}), but a pre-committed one may have to wait {needed} ms: "
            "checkpoint_interval_ms + checkpoint_timeout_ms + restarts (restart_attempts, restart_delay_max_ms). "
            f"Raise the time-outs (transaction.max.timeout.ms={NO_TIMEOUT_MS} on the brokers removes the limit) or "
            "lower the others"
        )
    return timeout


class TopicsMissing(ConfigurationError):
    """Topics that the job names aren't there; others may not be either."""


def require_topics(client: ControlClient, topics: tuple[str, ...], role: str) -> dict[str, TopicInfo]:
    """Return what is known of topics; raise TopicsMissing, naming those that are missing."""
    found = client.topics(topics)
    if missing := [topic for topic in topics if topic not in found]:
        raise TopicsMissing(missing_topics({role: missing}))
    return found


def missing_topics(by_role: Mapping[str, Sequence[str]], servers: str = "") -> str:
    """Name topics that aren't there, and the one command that makes them, on these servers where there are several."""
    what = " and ".join(
        f"{role} topic{'s' if len(topics) > 1 else ''} {', '.join(map(repr, topics))}"
        for role, topics in by_role.items()
    )
    names = list(dict.fromkeys(topic for topics in by_role.values() for topic in topics))
    command = f"twopc topics create {' '.join(names)}{f' -b {servers}' if servers else ''}, or kafka-topics.sh"
    if len(names) == 1:
        return f"{what} isn't there: create it ({command}), or correct its name"
    return f"{what} aren't there: create them ({command}), or correct their names"


def warn_of_internal_topics(names: Iterable[str], use: str) -> None:
    """Warn of each topic whose name says that it is Kafka's own; `use` is what the job does with it."""
    for name in names:
        if name.startswith(INTERNAL_PREFIX):
            log.warning(
                "topic %r is %s, though names that begin with %r are those of topics that Kafka and its tools keep for "
                "themselves, in formats of their own: is it the right one?",
                name,
                use,
                INTERNAL_PREFIX,
            )
