"""The settings of the source `twopc-kafka`, as one frozen value that is checked when it is made.

Their names are those of Spark's own Kafka source, of which case does not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.kafka.clients.client_config import checked_query_properties
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.startup_modes import StartingOffsets, StartupMode
from twopc.kafka.topics.topic_pattern import TopicPattern, checked_pattern
from twopc.spark.streaming.client_options import PREFIX, GivenOptions, names_in

SUBSCRIBE, PATTERN, EXCLUDE = "subscribe", "subscribePattern", "excludePattern"
START, START_TIME = "startingOffsets", "startingTimestamp"
MOST, LEAST, WAIT = "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"
HEADERS, ACCEPT = "includeHeaders", "acceptLoss"
NAMES = (SUBSCRIBE, PATTERN, EXCLUDE, START, START_TIME, MOST, LEAST, WAIT, HEADERS, ACCEPT)

LONGEST_WAIT = "15m"

_INSTEAD = {
    "failondataloss": f"a loss always ends the query here; the error says what to give up by {ACCEPT}",
    "assign": f"say {SUBSCRIBE}",
    "path": f"load() and start() take no path: say {SUBSCRIBE}",
}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a query's source; docs/structured-streaming.md says what each means."""

    servers: str
    topics: tuple[str, ...]
    pattern: TopicPattern | None
    start: StartupMode
    most: int | None
    least: int | None
    longest_wait_ms: int
    headers: bool
    accepted: frozenset[str]
    properties: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Raise ConfigurationError, naming it, for an option that can't be meant."""
        own = GivenOptions.of(options)
        _refuse_unknown(own.own)
        given = {name: own.own[name.lower()] for name in NAMES if name.lower() in own.own}
        pattern = checked_pattern(given[PATTERN], names_in(given.get(EXCLUDE, ""))) if PATTERN in given else None
        topics = names_in(given.get(SUBSCRIBE, ""))
        if bool(topics) == (pattern is not None):
            raise ConfigurationError(
                f"twopc-kafka needs topics or a pattern of their names: say option('{SUBSCRIBE}', 'TOPIC,TOPIC') or "
                f"option('{PATTERN}', 'REGEX'), and not both"
            )
        return cls(
            servers=own.servers,
            topics=topics,
            pattern=pattern,
            start=_start(given),
            most=_count(given, MOST),
            least=_count(given, LEAST),
            longest_wait_ms=_wait_ms(given.get(WAIT, LONGEST_WAIT)),
            headers=_switch(given.get(HEADERS, "false")),
            accepted=frozenset(names_in(given.get(ACCEPT, ""))),
            properties=checked_query_properties(own.properties),
        )

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.servers, self.properties)


def _refuse_unknown(own: Mapping[str, str]) -> None:
    for name in own.keys() - {name.lower() for name in NAMES}:
        instead = _INSTEAD.get(name, f"it knows {', '.join(NAMES)}, and {PREFIX}* for properties of librdkafka's")
        raise ConfigurationError(f"the source twopc-kafka has no option {name!r}: {instead}")


def _start(given: Mapping[str, str]) -> StartupMode:
    where, when = given.get(START, "earliest"), given.get(START_TIME)
    if when is not None:
        if START in given:
            raise ConfigurationError(f"{START} and {START_TIME} both say where to begin: leave one of them out")
        if not when.isdecimal():
            raise ConfigurationError(f"{START_TIME} is Unix milliseconds, not {when!r}")
        return StartingOffsets.timestamp(int(when))
    match where.strip().lower():
        case "earliest":
            return StartingOffsets.earliest()
        case "latest":
            return StartingOffsets.latest()
    return StartingOffsets.specific(_given_offsets(where))


def _given_offsets(where: str) -> dict[tuple[str, int], int]:
    try:
        by_topic = json.loads(where)
        return {(topic, int(number)): at for topic, offsets in by_topic.items() for number, at in offsets.items()}
    except (AttributeError, ValueError):
        raise ConfigurationError(
            f'{START} is earliest, latest, or offsets as JSON, {{"TOPIC": {{"0": 42}}}}, not {where!r}'
        ) from None


def _count(given: Mapping[str, str], name: str) -> int | None:
    written = given.get(name)
    if written is not None and not (written.isdecimal() and int(written)):
        raise ConfigurationError(f"{name} is a number of offsets, 1 or more, not {written!r}")
    return None if written is None else int(written)


def _wait_ms(written: str) -> int:
    try:
        return duration_ms(written)
    except ValueError as error:
        raise ConfigurationError(f"{WAIT}: {error}") from error


def _switch(written: str) -> bool:
    if written.lower() not in ("true", "false"):
        raise ConfigurationError(f"{HEADERS} is true or false, not {written!r}")
    return written.lower() == "true"
