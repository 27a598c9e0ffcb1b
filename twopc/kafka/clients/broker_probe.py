"""A probe of the brokers: asks for a topic that need not be there, to find out whether they answer.

`describe_cluster` is smaller, but librdkafka 2.16 aborts the whole process where the answer to it names no broker, as
that of a lone broker does while the controller has it fenced: `rd_kafka_admin_response_parse: Assertion 'rko_result'`.
"""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

NOBODYS_TOPIC = "twopc.is-anybody-there"


def is_answered(client: AdminClient, *, request_seconds: float, patience_seconds: float) -> bool:
    """Ask; return whether a broker has answered in `patience_seconds`, that it knows of no such topic or whatever else.

    The client itself goes on asking for `request_seconds`.
    """
    topics = TopicCollection([NOBODYS_TOPIC])
    try:
        # Not raised: the error's traceback would hold the client in a cycle, whose collection, if it comes to that in a
        # thread of the client's own, aborts the process.
        error = client.describe_topics(topics, request_timeout=request_seconds)[NOBODYS_TOPIC].exception(
            patience_seconds
        )
    except TimeoutError:
        return False
    # Brokers' own errors have codes above 0, those of the client below.
    return error is None or (isinstance(error, KafkaException) and error.args[0].code() > 0)
