"""Errors over the wire: each of ours has one status code, and its message travels as the details."""

from __future__ import annotations

import grpc

from twopc.errors import (
    CheckpointCorrupted,
    ConfigurationError,
    Fenced,
    ProtocolViolation,
    TwoPhaseCommitError,
    Unavailable,
)


class Overloaded(Unavailable):
    """A limit of the coordinator was met; the message says which."""


_CODES: dict[type[TwoPhaseCommitError], grpc.StatusCode] = {
    ConfigurationError: grpc.StatusCode.INVALID_ARGUMENT,
    Fenced: grpc.StatusCode.FAILED_PRECONDITION,
    CheckpointCorrupted: grpc.StatusCode.DATA_LOSS,
    Overloaded: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    ProtocolViolation: grpc.StatusCode.INTERNAL,
}
_ERRORS = {code: error for error, code in _CODES.items()}
_TRANSIENT = frozenset({grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED})


def code_of(error: TwoPhaseCommitError) -> grpc.StatusCode:
    """The status code that stands for this error."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)


def error_of(error: grpc.RpcError, address: str) -> TwoPhaseCommitError:
    """The error that a failed call stands for."""
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return ConfigurationError(f"the coordinator at {address} refused the token: {details}")
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return ConfigurationError(f"the coordinator at {address} refused the certificate: {details}")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unavailable(f"the coordinator at {address} has not answered in time: what was asked may still happen")
    if code is grpc.StatusCode.UNAVAILABLE or code in _TRANSIENT:
        return Unavailable(f"the coordinator at {address} can't be reached, or can't answer now: {details}")
    kind = _ERRORS.get(code)
    if kind is None:
        return ProtocolViolation(f"the coordinator at {address} answered {code.name}: {details}")
    return kind(details)
