"""Shell completion for the values of options and arguments: fixed ones, and what a checkpoint folder has.

Invariant: nothing is asked of brokers or coordinators, and a folder that can't be read offers nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from twopc.errors import TwoPhaseCommitError

if TYPE_CHECKING:
    from twopc.storage.store import CheckpointStore

HOSTS = (("spark", "a Spark application"), ("process", "plain processes on this machine, no JVM"))
INLINE = ("inline", "this very process: for breakpoints")
MASTERS = (
    ("local[*]", "this machine, a task slot for each core"),
    ("local[2]", "this machine, two task slots"),
    ("spark://", "HOST:PORT of a standalone master"),
    ("yarn", "the cluster of HADOOP_CONF_DIR"),
    ("k8s://", "https://HOST:PORT of a Kubernetes API"),
)

Offer = tuple[str, str]


def one_of(*offers: str | Offer) -> Callable[[str], list[Offer]]:
    """Offer these values, each alone or with what it means."""
    pairs = [(offer, "") if isinstance(offer, str) else offer for offer in offers]

    def complete(incomplete: str) -> list[Offer]:
        return [pair for pair in pairs if pair[0].startswith(incomplete)]

    return complete


def job_names(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the jobs that have checkpoints in the folder, or run there."""
    return _offered(_jobs(_store(ctx)), incomplete)


def checkpoint_names(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Offer "latest", and the id and label of each completed checkpoint."""
    return _offered(_checkpoints(ctx), incomplete)


def restore_names(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Offer what `twopc run --from` takes."""
    return _offered([*_checkpoints(ctx), ("none", "begin where the source says")], incomplete)


def _offered(offers: Iterable[Offer], incomplete: str) -> list[Offer]:
    try:
        return [offer for offer in offers if offer[0].startswith(incomplete)]
    except (TwoPhaseCommitError, OSError):
        return []


def _store(ctx: typer.Context) -> CheckpointStore:
    from twopc.storage.open import open_store

    return open_store(ctx.params.get("checkpoint_dir") or os.environ.get("TWOPC_CHECKPOINT_DIR") or "checkpoints")


def _jobs(store: CheckpointStore) -> Iterator[Offer]:
    from twopc.driver.discovery import find_all
    from twopc.storage.store import jobs_in

    running = {announcement.job for announcement in find_all(store)}
    kept = set(jobs_in(store))
    for name in sorted(running | kept):
        yield name, "runs" if name in running else ""


def _checkpoints(ctx: typer.Context) -> list[Offer]:
    from twopc.checkpoints.catalog import read_job
    from twopc.storage.store import jobs_in

    store, job = _store(ctx), ctx.params.get("job")
    offers = [("latest", "the newest that has completed")]
    for name in [job] if job else jobs_in(store):
        for entry in reversed(read_job(store, name).completed):
            names = filter(None, (str(entry.checkpoint_id), entry.label))
            offers += [(each, f"{name}, checkpoint {entry.checkpoint_id}") for each in names]
    return offers
