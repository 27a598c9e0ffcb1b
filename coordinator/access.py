"""Who may call: loopback by default, a bearer token or certificates where they are set.

Invariants: nothing but a health check passes without what is asked for, on loopback too; what has no rule is refused.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from typing import Any

import grpc

from twopc.errors import ConfigurationError
from twopc.rpc.channel import checked_token
from twopc.rpc.tls import TlsFiles

_OPEN_TO_ALL = "/grpc.health.v1.Health/"
_OPEN_TO_TASKS = "/twopc.rpc.SubtaskControl/"

TASK = b"urn:twopc:role:task"
ADMIN = b"urn:twopc:role:admin"
"""The role of a client, as a URI among the alternative names of its certificate. An admin may do what a task may."""


def check_address(address: str, token: str | None, tls: TlsFiles | None, allow_insecure: bool) -> None:
    """Raise ConfigurationError if this address would let strangers in."""
    host = address.rpartition(":")[0].strip("[]")
    if not host:
        raise ConfigurationError(f"address {address!r} can't be used: give host:port (port 0 takes a free one)")
    if token or (tls is not None and tls.ca) or allow_insecure or _is_loopback(host):
        return
    raise ConfigurationError(
        f"address {address!r} can be reached from other machines, and neither a token nor certificates are asked for: "
        "set a token (--token-file), or mutual TLS (--tls-cert, --tls-key and --tls-client-ca), listen on 127.0.0.1, "
        "or say --allow-insecure if everyone who can reach it may control the jobs"
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
        self._expected = f"Bearer {checked_token(token)}".encode()
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


class RoleCheck(grpc.ServerInterceptor):  # type: ignore[type-arg]
    """Where clients show certificates: a task's opens the subtasks' stream only; one without a role opens nothing."""

    def intercept_service(
        self, continuation: Callable[[grpc.HandlerCallDetails], Any], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        handler = continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(_OPEN_TO_ALL):
            return handler
        allowed = frozenset({TASK, ADMIN} if method.startswith(_OPEN_TO_TASKS) else {ADMIN})
        form = ("stream" if handler.request_streaming else "unary", "stream" if handler.response_streaming else "unary")
        return handler._replace(**{"_".join(form): _only_for(allowed, getattr(handler, "_".join(form)))})


def _only_for(allowed: frozenset[bytes], behaviour: Callable[[Any, grpc.ServicerContext], Any]) -> Callable[..., Any]:
    def guarded(request: Any, context: grpc.ServicerContext) -> Any:
        names = context.auth_context().get("x509_subject_alternative_name", ())
        if allowed.isdisjoint(names):
            wanted = " or ".join(role.decode() for role in sorted(allowed))
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"the certificate may not do this: among its subject's alternative names there must be {wanted}",
            )
        return behaviour(request, context)

    return guarded
