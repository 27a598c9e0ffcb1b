"""The coordinator's access rules: for callers, their number and size, and what of a message it keeps and passes on.

Callers come from this machine by default, from others with a bearer token or certificates.

Invariants:
- nothing but a health check passes without what is asked for, on loopback too; what has no rule is refused;
- no text goes further than `twopc.rpc.redaction` lets it; a state handle names its own place in the job's checkpoint
  folder, and nothing else; a duration is a number, which JSON can hold.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import grpc

from twopc.errors import ConfigurationError, ProtocolViolation
from twopc.protocol.figures import FIGURES, Figures
from twopc.protocol.layout import subtask_folder
from twopc.protocol.messages import Ack, Decline, Failed, Progress, ToCoordinator
from twopc.protocol.record_errors import RecordErrorKind
from twopc.protocol.requests import Request, StartAttempt, redacted
from twopc.rpc.channel import checked_token
from twopc.rpc.redaction import redact
from twopc.rpc.tls import TlsFiles

_OPEN_TO_ALL = "/grpc.health.v1.Health/"
_OPEN_TO_TASKS = "/twopc.rpc.SubtaskControl/"

TASK = b"urn:twopc:role:task"
ADMIN = b"urn:twopc:role:admin"
"""The role of a client, as a URI among the alternative names of its certificate. An admin may do what a task may."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on what the coordinator takes from its peers at a time, so that no one of them can harm the others.

    The defaults are far above what a job needs.

    streams: open calls of all peers; each open stream holds a thread, made when it is needed. More are refused.
    streams_of_connection: the same of one connection; more wait.
    events_in_flight: what one subtask has said and the coordinator has not yet looked at; one that floods is cut off.
    attach_seconds: how long an open stream may be silent before it says whose it is.
    answer_seconds: how long a call may wait for the coordinator's one thread.
    """

    streams: int = 1_024
    streams_of_connection: int = 256
    events_in_flight: int = 128
    attach_seconds: float = 10.0
    answer_seconds: float = 30.0


def admitted_request(request: Request[Any], limits: Limits) -> Request[Any]:
    """Return a request as it is taken in; raise ConfigurationError for more subtasks than there may be."""
    if isinstance(request, StartAttempt) and request.parallelism > limits.streams:
        raise ConfigurationError(
            f"parallelism {request.parallelism} is more than this coordinator's limit, {limits.streams}"
        )
    return redacted(request, redact)


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
    """Checks roles in clients' certificates: a task's opens the subtasks' stream only; without a role none opens."""

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


PENDING_MAX = 100
"""Names of pre-committed transactions that a report of progress may have; a subtask has a handful."""

ERROR_KINDS_MAX = 10
"""New kinds of errors of records that a report of progress may tell of."""

OPERATORS_MAX = 1_000
"""Operators whose stream time an acknowledgement may tell."""

SAMPLES_MAX = 1_000
"""Splits, and operators by partition number, that a report may measure."""


def admitted(message: ToCoordinator) -> ToCoordinator:
    """Return the message as it may be taken; raise ProtocolViolation if it may not."""
    match message:
        case Ack():
            expected = subtask_folder(message.checkpoint_id, message.snapshot.subtask)
            if message.snapshot.state.path != expected:
                raise ProtocolViolation(f"an acknowledgement names state elsewhere than in {expected}")
            if not all(isfinite(duration) and duration >= 0 for duration in message.durations):
                raise ProtocolViolation("an acknowledgement tells of a duration that is none")
            if len(message.times) > OPERATORS_MAX:
                raise ProtocolViolation(f"an acknowledgement tells of the times of more than {OPERATORS_MAX} operators")
            return message
        case Decline():
            return replace(message, reason=redact(message.reason))
        case Failed():
            return replace(message, error_type=redact(message.error_type), message=redact(message.message))
        case Progress():
            pending = tuple(redact(name) for name in message.pending_transactions[:PENDING_MAX])
            opened = None if message.open_transaction is None else redact(message.open_transaction)
            return replace(
                message,
                slow=redact(message.slow),
                open_transaction=opened,
                pending_transactions=pending,
                new_record_errors=tuple(map(_redacted, message.new_record_errors[:ERROR_KINDS_MAX])),
                figures=None if message.figures is None else _bounded(message.figures),
            )
        case _:
            return message


def _bounded(figures: Figures) -> Figures:
    """Of the figures that there are, so many samples with a value for each label, which is made fit to leave."""
    return {
        figure.name: tuple(
            replace(sample, labels=tuple(map(redact, sample.labels)))
            for sample in figures[figure.name][:SAMPLES_MAX]
            if len(sample.labels) == len(figure.labels)
        )
        for figure in FIGURES
        if figure.name in figures
    }


def _redacted(error: RecordErrorKind) -> RecordErrorKind:
    source, operator, error_type, message = map(redact, (error.source, error.operator, error.error_type, error.message))
    return RecordErrorKind(source, operator, error_type, message)
