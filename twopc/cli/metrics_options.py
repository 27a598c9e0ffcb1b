"""The options of commands that serve metrics, or send traces."""

from __future__ import annotations

from typing import Annotated

import typer

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        envvar="TWOPC_METRICS_PORT",
        help="Serve /metrics (Prometheus), /healthz and /readyz here; 0 takes a free port.",
        show_default="none",
    ),
]
MetricsHost = Annotated[
    str | None,
    typer.Option(
        "--metrics-host",
        envvar="TWOPC_METRICS_HOST",
        help="The address to serve them on: whoever reaches it may read them.",
        show_default="127.0.0.1",
    ),
]
Traces = Annotated[
    bool | None,
    typer.Option(
        "--traces",
        envvar="TWOPC_TRACES",
        help="Send one trace a checkpoint by OpenTelemetry, to OTEL_EXPORTER_OTLP_ENDPOINT; needs twopc-streams[otel].",
        show_default=False,
    ),
]
