"""A job on other topics: the same steps and serdes, another name, its own input and output.

A host that starts fresh processes loads the job from a file; so the job on other topics is a file too, written for the
run, that loads the user's and binds it anew.
"""

from __future__ import annotations

import copy
from pathlib import Path

from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.sink import KafkaSink
from twopc.kafka.source import KafkaSource
from twopc.kafka.start import StartingOffsets
from twopc.loader.job_loader import load_job

_FILE = '''"""Written by a benchmark, for one run."""

from twopc.bench.scratch import rebound

job = rebound({spec!r}, name={name!r}, source={source!r}, target={target!r})
'''


def rebound(spec: str, *, name: str, source: str, target: str) -> Job:
    """Return the job of a job file, under another name and on other topics.

    The input is read from its start. Whatever topic the job writes to, its records go to `target`. Raises
    ConfigurationError for a job that is not from Kafka to Kafka.
    """
    return Job.of(_rebound(load_job(spec), name, source, target))


def write_job_file(folder: Path, spec: str, *, name: str, source: str, target: str) -> str:
    """Write a job file that defines `rebound(...)`; return its path."""
    file, colon, variable = spec.rpartition(":")
    path, suffix = (file, f":{variable}") if colon and file.endswith(".py") else (spec, "")
    absolute = f"{Path(path).resolve()}{suffix}"
    written = folder / "bench_job.py"
    written.write_text(_FILE.format(spec=absolute, name=name, source=source, target=target))
    return str(written)


def _rebound(definition: JobDefinition, name: str, source: str, target: str) -> JobDefinition:
    pipeline = definition.pipeline("benchmarked")
    if not isinstance(pipeline.source, KafkaSource) or not isinstance(pipeline.sink, KafkaSink):
        raise ConfigurationError(
            f"job {definition.name!r} can't be benchmarked: it must read with KafkaSource and write with KafkaSink"
        )
    reads, writes = copy.copy(pipeline.source), copy.copy(pipeline.sink)
    reads.inputs, reads.group_id, reads.start, reads.bootstrap_servers = (
        (source,),
        None,
        StartingOffsets.earliest(),
        None,
    )
    writes.topic, writes.transactional_id_prefix, writes.bootstrap_servers = target, None, None
    return definition.replaced({pipeline.source_id: reads, pipeline.sink_id: writes}, name)
