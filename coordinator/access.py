"""Who may call: loopback by default, a bearer token where one is set."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from typing import Any

import grpc

from twopc.errors import ConfigurationError

_OPEN_TO_ALL = "/grpc.health.v1.Health/"


def check_address(address: str, token: str | None, allow_insecure: bool) -> None:
    """Raise ConfigurationError if this address would let strangers in."""
    host = address.rpartition(":")[0].strip("[]")
    if not host:
        raise ConfigurationError(f"address {address!r} can't be used: give host:port (port 0 takes a free one)")
    if token or allow_insecure or _is_loopback(host):
        return
    raise ConfigurationError(
        f"address {address!r} can be reached from other machines, and no token is set: set one (--token-file), listen "
        "on 127.0.0.1, or say --allow-insecure if everyone who can reach it may control the jobs"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class TokenCheck(grpc.ServerInterceptor):  # type: ignore[type-arg]
    """Refuses every call but health checks without the right token."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        self._refusal = grpc.unary_unary_rpc_method_handler(_refuse)

    def intercept_service(
        self, continuation: Callable[[grpc.HandlerCallDetails], Any], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        if handler_call_details.method.startswith(_OPEN_TO_ALL):
            return continuation(handler_call_details)
        metadata = dict(handler_call_details.invocation_metadata)
        given = metadata.get("authorization", "")
        if hmac.compare_digest(given.encode() if isinstance(given, str) else given, self._expected):
            return continuation(handler_call_details)
        return self._refusal


def _refuse(_request: Any, context: grpc.ServicerContext) -> Any:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "a bearer token is asked for, and none or a wrong one was given")
