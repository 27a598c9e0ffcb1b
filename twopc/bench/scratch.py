"""A job on other topics: the same graph, steps and serdes, another name, its own inputs and outputs.

A host that starts fresh processes loads the job from a file; so the job on other topics is a file too, written for the
run, that loads the user's and binds it anew. All other names follow from that of the job.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

from twopc.graph import JobDefinition
from twopc.job import Job
from twopc.kafka.ends import KafkaEnds
from twopc.kafka.start import StartingOffsets
from twopc.loader.job_loader import load_job
from twopc.sink import Sink
from twopc.source import Source

_FILE = '''"""Written by a benchmark, for one run."""

from twopc.bench.scratch import rebound

job = rebound({spec!r}, name={name!r}, topics={topics!r})
'''


Topics = Mapping[str, str]
"""Topics of sources and sinks, by operator id."""


def rebound(spec: str, *, name: str, topics: Topics | None = None) -> Job:
    """Return the job of a job file, under another name and on topics of that name, or those that are given.

    Every input is read from its start. Raises ConfigurationError for a job that is not from Kafka to Kafka.
    """
    return Job.of(rebound_definition(load_job(spec), name, "benchmarked", topics))


def rebound_definition(definition: JobDefinition, name: str, done: str, topics: Topics | None = None) -> JobDefinition:
    """Return the job on the topics `scratch_inputs(name)` and `scratch_outputs(name)` of its ends, or on others."""
    ends, topics = KafkaEnds.only(definition, done), topics or {}
    parts: dict[str, Source | Sink] = {}
    for key, topic in ends.scratch_inputs(name).items():
        reads = copy.copy(ends.sources[key])
        reads.inputs, reads.group_id = (topics.get(key, topic),), None
        reads.start, reads.bootstrap_servers = StartingOffsets.earliest(), None
        parts[key] = reads
    prefixes = ends.scratch_prefixes(name)
    for key, topic in ends.scratch_outputs(name).items():
        writes = copy.copy(ends.sinks[key])
        writes.topic, writes.bootstrap_servers = topics.get(key, topic), None
        writes.transactional_id_prefix = prefixes[key]
        parts[key] = writes
    return definition.replaced(parts, name)


def absolute(spec: str) -> str:
    """Return a job's name as it is given to be loaded, wherever the file that names it is written."""
    file, colon, variable = spec.rpartition(":")
    path, suffix = (file, f":{variable}") if colon and file.endswith(".py") else (spec, "")
    return f"{Path(path).resolve()}{suffix}"


def write_job_file(folder: Path, spec: str, *, name: str, topics: Topics | None = None) -> str:
    """Write a job file that defines `rebound(...)`; return its path."""
    written = folder / "bench_job.py"
    written.write_text(_FILE.format(spec=absolute(spec), name=name, topics=dict(topics or {})))
    return str(written)
