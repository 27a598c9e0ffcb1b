"""The options of the sink `twopc-kafka`."""

from __future__ import annotations

from collections.abc import Mapping

from twopc.errors import ConfigurationError
from twopc.spark.streaming.client_options import PREFIX, GivenOptions, names_in
from twopc.spark.streaming.options import SinkOptions, timeout_of

NAME, DECISIONS, TOPIC = "name", "decisions", "topic"
FIRST_BATCH, ACCEPT_LOSS, TIMEOUT = "firstBatch", "acceptLoss", "transactionTimeout"
NAMES = (NAME, DECISIONS, TOPIC, TIMEOUT, FIRST_BATCH, ACCEPT_LOSS)

_OF_SPARK = frozenset({"checkpointlocation", "queryname"})


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Return what a query says of its output; raise ConfigurationError that names an option that can't be meant."""
    given = GivenOptions.of(options)
    own = given.own
    known = {name.lower() for name in NAMES}
    for strange in sorted(own.keys() - known - _OF_SPARK):
        raise ConfigurationError(
            f"the sink twopc-kafka has no option {strange!r}: it knows {', '.join(NAMES)}, and {PREFIX}* for "
            "properties of librdkafka's"
        )
    for needed in (NAME, DECISIONS):
        if not own.get(needed):
            raise ConfigurationError(f"the sink twopc-kafka needs option({needed!r}, ...): {_MEANS[needed]}")
    return SinkOptions(
        name=own[NAME],
        decisions=own[DECISIONS],
        bootstrap_servers=given.servers,
        topic=own.get(TOPIC),
        first_batch=_batch(own.get(FIRST_BATCH.lower(), "0")),
        accept_loss=frozenset(names_in(own.get(ACCEPT_LOSS.lower(), ""))),
        transaction_timeout_ms=timeout_of(own.get(TIMEOUT.lower())),
        properties=given.properties,
    )


_MEANS = {
    NAME: "it stands in the query's transactional ids, and no other query or job may have it",
    DECISIONS: "a folder, or a URL of an object store, that every future driver of the query sees",
}


def _batch(written: str) -> int:
    if not written.isdecimal():
        raise ConfigurationError(f"option {FIRST_BATCH} is the number of a batch, not {written!r}")
    return int(written)
