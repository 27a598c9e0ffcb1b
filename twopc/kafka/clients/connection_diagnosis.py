"""Diagnoses why brokers that listen can't be used with these settings, and names the setting to look at.

librdkafka says why a connection failed and kafka-python doesn't; what neither sees, the port is asked (`listener`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import access_of, mechanism, principal, security_protocol
from twopc.kafka.clients.broker_probe import is_answered
from twopc.kafka.clients.client_log import CLIENT_LOG, WARNINGS_ONLY
from twopc.kafka.clients.listener import Listener, listener_at

SECONDS = 3.0
_ANSWER_SECONDS = 0.2
_ALERT = re.compile(r"alert [a-z ]*certificate[a-z ]*|alert unknown ca|alert handshake failure")


def diagnose(servers: str, properties: Mapping[str, Any], seconds: float = SECONDS) -> str:
    """Return what is wrong with the settings; empty where they work, or nothing is known for certain in time."""
    errors: list[KafkaError] = []
    config: dict[str, Any] = {
        "bootstrap.servers": servers,
        "error_cb": errors.append,
        "logger": CLIENT_LOG,
        "log_level": WARNINGS_ONLY,
    }
    try:
        client = AdminClient({**access_of(properties), **config})
    except KafkaException as error:
        raise ConfigurationError(f"the Kafka client does not take these settings: {error.args[0].str()}") from error
    deadline = time.monotonic() + seconds
    while True:
        # A short patience is the only short time-out: librdkafka goes on asking in the background.
        if is_answered(client, request_seconds=SECONDS, patience_seconds=_ANSWER_SECONDS):
            return ""
        client.poll(0)
        if errors and (reason := _reason(servers, properties, errors)):
            return reason
        if time.monotonic() > deadline:
            return ""


def _reason(servers: str, properties: Mapping[str, Any], errors: Sequence[KafkaError]) -> str:
    protocol = security_protocol(properties)
    listener = next(filter(None, map(listener_at, servers.split(","))), None)
    if listener is not None and (other := _other_protocol(protocol, listener)):
        return other
    for error in errors:
        reason = essence(error.str())
        if error.code() == KafkaError._AUTHENTICATION:
            let_in = "" if listener is None or not listener.mechanisms else f" of {', '.join(listener.mechanisms)}"
            return (
                f"they refuse the login ({reason}): check {principal(properties)}, its password or secret, and "
                f"sasl.mechanism ({mechanism(properties)}{let_in})"
            )
        if error.code() == KafkaError._SSL:
            return f"their certificate is not trusted ({reason}): check ssl.ca.location (or ssl.ca.pem)"
        if alert := _ALERT.search(error.str()):
            return (
                f"they refuse the client's certificate ({alert.group()}): check ssl.certificate.location and "
                "ssl.key.location (or ssl.certificate.pem and ssl.key.pem)"
            )
    return ""


def _other_protocol(protocol: str, listener: Listener) -> str:
    if protocol == listener.protocol or (protocol, listener.protocol) == ("SASL_SSL", "SSL"):
        return ""
    wanted = listener.protocol
    if listener.mechanisms:
        wanted = f"{wanted}, with sasl.mechanism one of {', '.join(listener.mechanisms)}"
    return f"they speak {listener.protocol} on that port, and security.protocol is {protocol}: set it to {wanted}"


def essence(text: str) -> str:
    """Return librdkafka's words without the broker's address before them and its own state behind."""
    return re.sub(r"^\S+: |\(after \d+ms in state [A-Z_]+\).*$", "", text).strip()
