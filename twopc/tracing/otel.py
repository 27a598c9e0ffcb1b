"""What traces and metrics by OpenTelemetry have in common: who sends them, and which of its variables are refused."""

from __future__ import annotations

import os

from twopc.errors import ConfigurationError

try:
    from opentelemetry.sdk.resources import Resource
except ImportError as error:
    raise ConfigurationError(
        f"traces and metrics by OpenTelemetry need it, and it isn't here ({error}): pip install 'twopc-streams[otel]'"
    ) from error

PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


def resource() -> Resource:
    """Return who sends: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go over the name that we have."""
    found = Resource.create()
    is_named = not str(found.attributes["service.name"]).startswith("unknown_service")
    return found if is_named else found.merge(Resource({"service.name": "twopc"}))


def refuse_other_ways(what: str) -> None:
    """Raise ConfigurationError where the environment wants `what`, TRACES or METRICS, to go out by another way."""
    only = {f"OTEL_{what}_EXPORTER": "otlp", PROTOCOL: "grpc", f"OTEL_EXPORTER_OTLP_{what}_PROTOCOL": "grpc"}
    for variable, way in only.items():
        if (chosen := os.environ.get(variable, "")) not in ("", way):
            raise ConfigurationError(
                f"{variable} is {chosen!r}, and {what.lower()} go out by OTLP over gRPC only: set it to {way!r}, or "
                "unset it"
            )
