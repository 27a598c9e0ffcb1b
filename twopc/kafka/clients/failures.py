"""librdkafka's errors in the words of this project."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from twopc.errors import ConfigurationError, Fenced, TwoPhaseCommitError, Unavailable, UserCodeError
from twopc.kafka.clients.authorization_errors import NOT_ALLOWED, denied

_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
_REFUSED = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
_SETTING = {KafkaError._INVALID_ARG, KafkaError.INVALID_TRANSACTION_TIMEOUT}
PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}
_UNKNOWN_TOPIC = {KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
_OTHER_MEMBERS = {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION}


def error_of(exception: KafkaException) -> KafkaError:
    """Return librdkafka's error, which confluent-kafka's exception only carries."""
    error: KafkaError = exception.args[0]
    return error


def failure(doing: str, error: KafkaError) -> TwoPhaseCommitError:
    """Return what to raise when `error` stopped us `doing` something."""
    code = error.code()
    problem = f"{doing} failed: {error.str()}"
    if code in _FENCED:
        return Fenced(
            f"{problem}. Another producer took the transactional id over: a newer attempt of this job, or another job "
            "with the same transactional_id_prefix"
        )
    if code in NOT_ALLOWED:
        return denied(code, problem)
    if code in _REFUSED:
        return ConfigurationError(f"{problem}. Check sasl.username, its password and sasl.mechanism")
    if code in _SETTING:
        return ConfigurationError(f"{problem}. Check the properties of source and sink, and transaction_timeout_ms")
    if code in _TOO_LARGE:
        return UserCodeError(
            f"{problem}. Make the record smaller, or let it through: the property message.max.bytes of the sink, "
            "KafkaSink(properties={'message.max.bytes': ...}), and the topic's max.message.bytes must be greater. "
            "If every record is smaller than the topic's max.message.bytes, give the sink a batch.size below it"
        )
    if code == KafkaError.INVALID_RECORD:
        return UserCodeError(
            f"{problem}. A topic with cleanup.policy=compact takes no record without a key: give it one with "
            "map_records, or drop it with filter_records"
        )
    if code == KafkaError.INVALID_TIMESTAMP:
        return UserCodeError(
            f"{problem}. The topic takes only what is near its brokers' clock: give the record another timestamp with "
            "map_records, or see the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms"
        )
    if code in _UNKNOWN_TOPIC:
        return ConfigurationError(f"{problem}. A topic of the job isn't there (any more)")
    if code in _OTHER_MEMBERS:
        return ConfigurationError(
            f"{problem}. The consumer group has other members: give the job a group_id of its own"
        )
    return Unavailable(problem)
