"""Sends traces to a collector by OTLP over gRPC, by OpenTelemetry, an extra (`twopc-streams[otel]`).

Where to, with which headers, how many and under which name of the service, OpenTelemetry's own variables say
(OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME, ...).

Invariants:
- whoever hands over traces waits for nobody: threads of our own and of the SDK's do the rest, and what is too much for
  the SDK's queue (OTEL_BSP_MAX_QUEUE_SIZE) is dropped;
- the end of the process waits `CLOSE_SECONDS` at most for a collector that doesn't answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from queue import SimpleQueue

from twopc.errors import ConfigurationError
from twopc.tracing.otel import refuse_other_ways, resource
from twopc.tracing.span import Span

try:
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import Status, StatusCode, Tracer, set_span_in_context
except ImportError as error:
    raise ConfigurationError(
        f"traces need OpenTelemetry, which isn't here ({error}): pip install 'twopc-streams[otel]'"
    ) from error

CLOSE_SECONDS = 5.0
NS_OF_MS = 1_000_000


class TraceExporter:
    """Any thread may `send`. Close it, and what was sent before goes out, as far as that is possible in time."""

    def __init__(self) -> None:
        refuse_other_ways("TRACES")
        self._provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
        self._exporter = OTLPSpanExporter()
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("twopc")
        self._traces: SimpleQueue[Span | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="twopc-traces", daemon=True)
        self._thread.start()

    def send(self, traces: Iterable[Span]) -> None:
        """Let these go out with the next batch."""
        for trace in traces:
            self._traces.put(trace)

    def close(self) -> None:
        """Send what waits."""
        self._traces.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            # Else it would go on trying.
            self._exporter.shutdown()

    def _run(self) -> None:
        while (trace := self._traces.get()) is not None:
            _record(self._tracer, trace, Context())
        self._provider.shutdown()


def _record(tracer: Tracer, span: Span, parent: Context) -> None:
    made = tracer.start_span(
        span.name, context=parent, attributes=dict(span.attributes), start_time=round(span.start_ms * NS_OF_MS)
    )
    if span.error:
        made.set_status(Status(StatusCode.ERROR, span.error))
    inside = set_span_in_context(made, parent)
    for child in span.children:
        _record(tracer, child, inside)
    made.end(round(span.end_ms * NS_OF_MS))
