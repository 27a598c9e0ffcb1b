"""`twopc jobs delete`: let go of what a job that is gone has left at the brokers."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from twopc.checkpoints.catalog import read_job
from twopc.cli.at_rest import refuse_unended, runs_here
from twopc.cli.checkpoint_options import CheckpointDir
from twopc.cli.cluster_options import cluster_of
from twopc.cli.coordinator_options import Job
from twopc.cli.output import Output, OutputOption
from twopc.cli.own_topics import OwnTopic, own_topics
from twopc.cli.shared_options import shared_options
from twopc.errors import ConfigurationError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.topic_client import TopicClient
from twopc.listing import listed
from twopc.storage.open import open_store


@shared_options(cluster=cluster_of)
def delete(
    cluster: Cluster,
    job: Job,
    topics: Annotated[bool, typer.Option("--topics", help="Delete the topics that it has made for itself.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    killed: Annotated[
        bool, typer.Option("--killed", help="The job's last run was killed, and it runs nowhere: go on.")
    ] = False,
    checkpoint_dir: CheckpointDir = "checkpoints",
    output: OutputOption = Output.TEXT,
) -> None:
    """Delete what a job that is gone has left at the brokers: the topics of its own (key_by), for good.

    It names them and asks. None of the job's checkpoints can be restored after that; they stay as they are, and so do
    the topics that it read and wrote. A topic that was made again since is refused: another has made it.

    Example: twopc jobs delete late-flights --topics -b 127.0.0.1:9092
    """
    if not topics:
        raise ConfigurationError("say what is to be deleted: --topics, the topics that the job has made for itself")
    store = open_store(checkpoint_dir)
    state = read_job(store, job).state
    if runs_here(store, job):
        raise ConfigurationError(f"job {job!r} runs: stop it first (twopc stop {job} --drain)")
    refuse_unended(job, state, killed, "stop it there")
    own = own_topics(store, job)
    with cluster.client() as client:
        there = _there(client, job, own)
        if there and not yes:
            _ask(job, there)
        for topic in there:
            client.delete_topic(topic.name)
    _tell(job, there, own, output)


def _there(client: TopicClient, job: str, own: Sequence[OwnTopic]) -> list[OwnTopic]:
    """Return those that are still there; raise ConfigurationError for one that is another."""
    found = client.topics([topic.name for topic in own]) if own else {}
    there = [topic for topic in own if topic.name in found]
    for topic in there:
        if found[topic.name].topic_id != topic.topic_id:
            raise ConfigurationError(
                f"topic {topic.name!r} is not the one that job {job!r} has made: it was deleted and made again since. "
                f"If nobody needs it, delete it by its name: twopc topics delete {topic.name}"
            )
    return there


def _ask(job: str, there: Sequence[OwnTopic]) -> None:
    names = listed([topic.name for topic in there])
    if not sys.stdin.isatty():
        raise ConfigurationError(f"nobody can be asked whether {names} may be deleted: say so with --yes")
    typer.confirm(f"Delete {names}? No checkpoint of job {job!r} can be restored then.", abort=True, err=True)


def _tell(job: str, gone: Sequence[OwnTopic], own: Sequence[OwnTopic], output: Output) -> None:
    names = [topic.name for topic in gone]
    if output is Output.JSON:
        typer.echo(json.dumps({"job": job, "deleted": names}))
    elif names:
        typer.echo(f"{job}: deleted {', '.join(names)}")
    else:
        typer.echo(f"{job}: {'its own topics are gone already' if own else 'has no topics of its own'}")
