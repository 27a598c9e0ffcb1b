"""Traces on the wire: what a collector gets, and what a process pays for one that is away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry is an extra: twopc-streams[otel]")

from tests.job_events import event
from tests.tracing.receiver import Receiver, attributes, receiving
from twopc import events
from twopc.config import RunSettings
from twopc.driver.trace_export import traces_of
from twopc.errors import ConfigurationError
from twopc.testing.ports import free_port
from twopc.tracing import otlp
from twopc.tracing.sender import traces_sent
from twopc.tracing.span import Span


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{found.address}")
        yield found


def aborted_checkpoint() -> list[events.Event]:
    return [
        event(events.CheckpointTriggered, time_ms=1_000),
        event(events.CheckpointAcknowledged, time_ms=1_040, duration_ms=30.0, pause_ms=10.0),
        event(events.CheckpointAborted, time_ms=2_000, message="subtask 1 is silent"),
    ]


def test_a_collector_gets_one_trace_a_checkpoint_at_the_times_that_the_events_say(receiver: Receiver) -> None:
    with traces_sent() as tell:
        for each in aborted_checkpoint():
            tell(each)
    spans = {span.name: span for span in receiver.spans}
    assert set(spans) == {"checkpoint", "trigger", "snapshot", "pre-commit", "store"}
    assert len({span.trace_id for span in spans.values()}) == 1
    root = spans["checkpoint"]
    assert (root.parent_span_id, spans["snapshot"].parent_span_id) == (b"", root.span_id)
    assert spans["store"].parent_span_id == spans["snapshot"].span_id
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (1_000_000_000, 2_000_000_000)
    assert (root.status.code, root.status.message) == (root.status.STATUS_CODE_ERROR, "subtask 1 is silent")
    assert attributes(root)["twopc.job.name"] == "flights"


def test_two_checkpoints_are_two_traces(receiver: Receiver) -> None:
    exporter = otlp.TraceExporter()
    exporter.send([Span("checkpoint", 1, 2), Span("checkpoint", 3, 4)])
    exporter.close()
    assert len({span.trace_id for span in receiver.spans}) == 2


def test_the_service_is_called_twopc_unless_the_environment_names_it(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a")
    for name in ("", "payments"):
        monkeypatch.setenv("OTEL_SERVICE_NAME", name)
        exporter = otlp.TraceExporter()
        exporter.send([Span("checkpoint", 1, 2)])
        exporter.close()
    resources = [attributes(request.resource_spans[0].resource) for request, _ in receiver.requests]
    assert [each["service.name"] for each in resources] == ["twopc", "payments"]
    assert [metadata["x-tenant"] for _, metadata in receiver.requests] == ["a", "a"]


def test_a_sampler_of_the_environment_decides(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    exporter = otlp.TraceExporter()
    exporter.send([Span("checkpoint", 1, 2)])
    exporter.close()
    assert receiver.spans == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_TRACES_EXPORTER", "console"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")],
)
def test_a_way_out_that_there_is_not_is_refused_by_name(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=variable), traces_of(RunSettings(traces=True)):
        pass


def test_who_hands_over_a_trace_waits_for_no_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr(otlp, "CLOSE_SECONDS", 0.2)
    exporter = otlp.TraceExporter()
    exporter.send(Span("checkpoint", number, number + 1) for number in range(1_000))
    exporter.close()
    exporter._thread.join(60)
    assert not exporter._thread.is_alive(), "nobody goes on trying"


def test_a_run_without_traces_loads_nothing_for_them() -> None:
    program = (
        "import sys; from twopc.config import RunSettings; from twopc.driver import run; "
        "from twopc.driver.trace_export import traces_of\n"
        "with traces_of(RunSettings()) as tell: assert tell is None\n"
        "assert not [name for name in sys.modules if name.startswith(('opentelemetry', 'twopc.tracing'))]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
