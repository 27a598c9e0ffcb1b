"""A result as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twopc.bench.result import BenchResult, Comparison

_ALIKE: Mapping[str, str] = {}


def figures(result: BenchResult) -> dict[str, str]:
    """Return every figure of a result by its name, as a person reads it; those not measured are left out."""
    shown = {
        "records": f"{result.records:,} in, {result.written:,} out, {result.visible:,} visible",
        "records/s, steady": _number(result.records_per_s, "{:,.0f}"),
        **_by_end(result),
        "CPU s a million records, steady": _number(result.cpu_s_per_million, "{:.2f}"),
        "CPU s a million records, whole run": f"{result.cpu_s_per_million_whole:.2f}",
        "start to first record": _number(result.startup_s, "{:.1f} s"),
        "whole run": f"{result.seconds:.1f} s",
        "checkpoints": f"{result.checkpoints} completed, {result.checkpoints_aborted} aborted",
        "checkpoint, ms": _spread(result.checkpoint_ms),
        "pause of the data loop, ms": _spread(result.pause_ms),
        "latency, ms": _spread(result.latency_ms),
        "memory, all processes": f"{result.memory_mb:,.0f} MB",
        "memory, largest worker": f"{result.worker_mb:,.0f} MB" if result.worker_mb else "",
        "restarts": str(result.restarts) if result.restarts else "",
    }
    return {name: value for name, value in shown.items() if value}


def _by_end(result: BenchResult) -> dict[str, str]:
    """The figures of each source and sink, where there are several."""
    shown: dict[str, str] = {}
    if len(result.sources) > 1:
        shown |= {f"source {name}": f"{records:,} records" for name, records in result.sources.items()}
    if len(result.sinks) > 1:
        shown |= {
            f"sink {name}": f"{sink.visible:,} records, {_number(sink.records_per_s, '{:,.0f}') or '?'} a second"
            for name, sink in result.sinks.items()
        }
    return shown


def text(result: BenchResult, compared: Sequence[Comparison] = (), differ: Mapping[str, str] = _ALIKE) -> str:
    """Return the report of a terminal; `differ` is what was not the same in the runs that are compared."""
    rows = list(figures(result).items())
    rows += [(f"vs before: {comparison.name}", _compared(comparison)) for comparison in compared]
    rows += [(f"not alike: {name}", values) for name, values in differ.items()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _spread(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in values.items())


def _compared(each: Comparison) -> str:
    word = {True: "better", False: "worse", None: "the same"}[each.better]
    return f"{each.now:,.2f} against {each.before:,.2f}: {each.ratio:.2f} times, {word}"
