"""Runs one subtask in its process: what every host calls in the worker."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

from twopc.clock import SystemClock
from twopc.errors import DEBUG_VARIABLE, ConfigurationError
from twopc.graph import JobDefinition
from twopc.loader.job_loader import in_its_folder
from twopc.rpc.subtask_link import SubtaskLink
from twopc.rpc.tls import worker_tls
from twopc.runtime.assembly import Surroundings, assemble, failure_of, subtask_of
from twopc.runtime.gc_tuning import collected_seldom
from twopc.runtime.spec import SubtaskSpec
from twopc.runtime.subtask import Subtask
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.shared_folder import require_shared
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.open import open_store
from twopc.storage.work_folder import make_work_folder, remove_of_more_subtasks, remove_work_folder
from twopc.termination import TERMINATION

log = logging.getLogger(__name__)


def run_subtask(load: Callable[[], JobDefinition], spec: SubtaskSpec) -> None:
    """Load the job and run one subtask of it to its end; what makes it fail is told to the coordinator and raised."""
    with running_subtask(load, spec) as subtask:
        while not subtask.ended:
            subtask.step()


@contextmanager
def running_subtask(load: Callable[[], JobDefinition], spec: SubtaskSpec) -> Iterator[Subtask]:
    """Give a subtask that is ready for its first step; what makes it fail, until then or meanwhile, is told as well."""
    with ExitStack() as closing:
        link = _link(spec)
        closing.callback(link.close)
        try:
            definition = load().with_access(spec.settings.kafka_properties)
            closing.enter_context(in_its_folder(definition))
            around = _surroundings(spec, link, closing)
            subtask = subtask_of(spec, assemble(definition, spec, around, closing))
            closing.enter_context(collected_seldom())
            with subtask.running():
                yield subtask
        except (GeneratorExit, *TERMINATION):
            # These end the process, or come from who runs the subtask, and say nothing of the subtask.
            raise
        except BaseException as error:
            level = logging.ERROR if os.environ.get(DEBUG_VARIABLE) else logging.DEBUG
            log.log(level, "subtask %d failed", spec.subtask, exc_info=True)
            link.send(failure_of(error))
            raise


def _link(spec: SubtaskSpec) -> SubtaskLink:
    """Begin to dial. What keeps this from working can't be told to the coordinator, so it is said here."""
    try:
        return SubtaskLink(
            spec.coordinator,
            job=spec.job,
            attempt=spec.attempt,
            subtask=spec.subtask,
            token=spec.token,
            tls=worker_tls(spec.settings),
            heartbeat_timeout_ms=spec.settings.heartbeat_timeout_ms,
        )
    except ConfigurationError as error:
        log.error("subtask %d can't dial the coordinator: %s", spec.subtask, error)
        raise


def _surroundings(spec: SubtaskSpec, link: SubtaskLink, closing: ExitStack) -> Surroundings:
    """The surroundings of a subtask in this process: the checkpoint folder, a folder for RocksDB, and threads."""
    store = open_store(spec.settings.checkpoint_dir)
    require_shared(store, spec.job, spec.attempt)
    remove_of_more_subtasks(store, spec.job, spec.parallelism, spec.attempt)
    work_folder = make_work_folder(store, spec.job, spec.subtask, spec.attempt)
    closing.callback(remove_work_folder, work_folder)
    storage = SnapshotStore(store.within(spec.job))
    return Surroundings(link, SystemClock(), storage, RocksDBBackend, work_folder, partial(ThreadPoolExecutor, 1))
