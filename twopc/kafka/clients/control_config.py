"""The access of the control client: librdkafka's settings in kafka-python's terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twopc.kafka.clients.access import OAUTHBEARER, check_access, check_files, mechanism, security_protocol
from twopc.kafka.clients.tls_context import tls_context
from twopc.kafka.clients.tokens import oidc_tokens

_NAMES = {
    "client.id": "client_id",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}


def control_config(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return kafka-python's settings; tuning stays behind. Raises ConfigurationError for what can't be used.

    A first token is got where tokens are wanted: kafka-python would not say why it has none.
    """
    check_access(properties)
    check_files(properties)
    config = {_NAMES[name]: value for name, value in properties.items() if name in _NAMES}
    protocol, how = security_protocol(properties), mechanism(properties)
    config["security_protocol"] = protocol
    if protocol.endswith("SSL"):
        config["ssl_context"] = tls_context(properties)
    if how:
        config["sasl_mechanism"] = how
    if how == OAUTHBEARER:
        config["sasl_oauth_token_provider"] = tokens = oidc_tokens(properties)
        tokens.token()
    return config
