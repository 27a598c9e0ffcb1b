"""The options of commands that serve metrics or a page, or send traces."""

from __future__ import annotations

from typing import Annotated

from twopc.cli.setting_options import option_of

MetricsPort = Annotated[int | None, option_of("metrics_port")]
MetricsHost = Annotated[str | None, option_of("metrics_host")]
UiPort = Annotated[int | None, option_of("ui_port")]
UiHost = Annotated[str | None, option_of("ui_host")]
OtlpMetrics = Annotated[bool | None, option_of("otlp_metrics")]
Traces = Annotated[bool | None, option_of("traces")]
