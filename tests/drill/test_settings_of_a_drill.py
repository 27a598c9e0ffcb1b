"""A drill listens on no port of the real job's, which may run beside it on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.config import RunSettings
from twopc.drill.restore import scratch_settings
from twopc.drill.supervisor import Supervisor


def test_a_restore_drill_serves_no_metrics_and_sends_no_traces(tmp_path: Path) -> None:
    settings = scratch_settings(
        RunSettings(host="process", metrics_port=9249, ui_port=9250, traces=True, otlp_metrics=True), tmp_path
    )
    assert (settings.metrics_port, settings.ui_port) == (None, None)
    assert (settings.traces, settings.otlp_metrics) == (False, False)


def test_the_processes_of_a_fault_drill_serve_none_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_METRICS_PORT", "9249")
    monkeypatch.setenv("TWOPC_COORDINATOR", "127.0.0.1:7070")
    monkeypatch.setenv("TWOPC_TRACES", "1")
    environment = Supervisor(tmp_path, "127.0.0.1:9092", "job.py", RunSettings(), ()).environment()
    assert {"TWOPC_METRICS_PORT", "TWOPC_COORDINATOR", "TWOPC_TRACES"}.isdisjoint(environment)
