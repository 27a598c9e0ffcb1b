"""A collector in this process: what an OTLP exporter sends by gRPC."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Receiver(TraceServiceServicer):  # type: ignore[misc]
    """Keeps what comes: each request with its metadata."""

    def __init__(self) -> None:
        self.address = ""
        self.metrics = MetricsReceiver()
        self._lock = threading.Lock()
        self._requests: list[tuple[Any, dict[str, str]]] = []

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  the name of the contract
        with self._lock:
            self._requests.append((request, dict(context.invocation_metadata())))
        return ExportTraceServiceResponse()

    @property
    def requests(self) -> list[tuple[Any, dict[str, str]]]:
        with self._lock:
            return list(self._requests)

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request, _ in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class MetricsReceiver(MetricsServiceServicer):  # type: ignore[misc]
    """Keeps the metrics that come: by name, of each request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: list[dict[str, Any]] = []

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  the name of the contract
        scopes = (scope for resource in request.resource_metrics for scope in resource.scope_metrics)
        with self._lock:
            self._sent.append({metric.name: metric for scope in scopes for metric in scope.metrics})
        return ExportMetricsServiceResponse()

    @property
    def sent(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._sent)


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(receiver, server)
    add_MetricsServiceServicer_to_server(receiver.metrics, server)
    receiver.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield receiver
    finally:
        server.stop(None).wait(10)


def attributes(of: Any) -> dict[str, Any]:
    """Return the attributes of a span, or a resource."""
    values = {each.key: each.value for each in of.attributes}
    return {key: getattr(value, value.WhichOneof("value")) for key, value in values.items()}
