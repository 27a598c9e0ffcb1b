"""Puts one subtask together from its parts, and runs it: what every host calls in the worker."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from twopc.clock import SystemClock
from twopc.errors import DEBUG_VARIABLE, ConfigurationError, TwoPhaseCommitError
from twopc.faults.points import CrashPoint, reached
from twopc.graph import JobDefinition
from twopc.operators import Dataflow
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Failed
from twopc.rpc.subtask_link import SubtaskLink
from twopc.rpc.tls import worker_tls
from twopc.runtime.batch_size import BatchSize
from twopc.runtime.garbage import collected_seldom
from twopc.runtime.inputs import Inputs
from twopc.runtime.outputs import Outputs
from twopc.runtime.parts import Parts
from twopc.runtime.spec import SubtaskSpec
from twopc.runtime.state import SubtaskStore
from twopc.runtime.subtask import Subtask
from twopc.source import SourceReader
from twopc.state.keyed import KeyedState
from twopc.state.layout import keyed_partition, parse_snapshot_path
from twopc.state.restore import restore_state
from twopc.state.serdes import check_serdes, write_serdes
from twopc.state.shared_folder import require_shared
from twopc.state.snapshot_store import SnapshotStore
from twopc.state.undeclared import drop_undeclared
from twopc.storage.local import LocalStore
from twopc.storage.work_folder import make_work_folder, remove_of_more_subtasks, remove_work_folder
from twopc.termination import TERMINATION
from twopc.transaction_group import GroupWriter

log = logging.getLogger(__name__)

SILENCE_MIN_SECONDS = 120.0


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
            subtask = _assemble(load().with_access(spec.settings.kafka_properties), spec, link, closing)
            closing.enter_context(collected_seldom())
            with subtask.running():
                yield subtask
        except (GeneratorExit, *TERMINATION):
            # These end the process, or come from who runs the subtask, and say nothing of the subtask.
            raise
        except BaseException as error:
            level = logging.ERROR if os.environ.get(DEBUG_VARIABLE) else logging.DEBUG
            log.log(level, "subtask %d failed", spec.subtask, exc_info=True)
            link.send(_failure(error))
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
        )
    except ConfigurationError as error:
        log.error("subtask %d can't dial the coordinator: %s", spec.subtask, error)
        raise


def _assemble(definition: JobDefinition, spec: SubtaskSpec, link: SubtaskLink, closing: ExitStack) -> Subtask:
    checkpoint_dir = Path(spec.settings.checkpoint_dir)
    require_shared(checkpoint_dir, spec.job, spec.attempt)
    remove_of_more_subtasks(checkpoint_dir, spec.job, spec.parallelism, spec.attempt)
    work_folder = make_work_folder(checkpoint_dir, spec.job, spec.subtask, spec.attempt)
    closing.callback(remove_work_folder, work_folder)
    storage = SnapshotStore(LocalStore(checkpoint_dir / spec.job))
    reached(CrashPoint.BEFORE_RESTORE, checkpoint=_restored(spec), subtask=spec.subtask)
    backend = restore_state(storage, spec.snapshots, [split.id for split in spec.splits], spec.subtask, work_folder)
    closing.callback(backend.close)
    settings = spec.settings
    keyed = [keyed_partition(split.begin) for split in spec.splits]
    drop_undeclared(backend, definition.state_serdes, settings.dropped_states(), keyed)
    check_serdes(backend, definition.state_serdes)
    write_serdes(backend, definition.state_serdes)
    patience = max(SILENCE_MIN_SECONDS, 2 * (settings.checkpoint_interval_ms + settings.checkpoint_timeout_ms) / 1000)
    # A process that was held up until its attempt was over must not open anything: it would only be in the way.
    link.await_welcome(patience)
    context = spec.context
    writers: list[GroupWriter] = []
    for group in spec.groups:
        writers.append(GroupWriter.open(group, definition.sinks, context))
        closing.callback(writers[-1].writer.close)
    reached(CrashPoint.BEFORE_SEEK, checkpoint=_restored(spec), subtask=spec.subtask)
    readers: dict[str, SourceReader] = {}
    for operator, source in definition.sources.items():
        readers[operator] = source.open_reader(context, [split for split in spec.splits if split.source == operator])
        closing.callback(readers[operator].close)
    snapshot_executor = ThreadPoolExecutor(1, "twopc-snapshot")
    store_executor = ThreadPoolExecutor(1, "twopc-store")
    commit_executor = ThreadPoolExecutor(1, "twopc-commit")
    # The first hands over to the second, so the second is closed after it.
    for executor in (store_executor, snapshot_executor, commit_executor):
        closing.callback(executor.shutdown, wait=True, cancel_futures=True)
    parts = Parts(
        inputs=Inputs(readers),
        dataflow=Dataflow(definition.operators, KeyedState(backend)),
        outputs=Outputs(writers),
        store=SubtaskStore(spec.subtask, backend, storage, work_folder, settings.inline_bytes(spec.parallelism)),
        link=link,
        clock=SystemClock(),
        snapshot_executor=snapshot_executor,
        store_executor=store_executor,
        commit_executor=commit_executor,
    )
    return Subtask(
        spec.subtask,
        parts,
        group=spec.group,
        silence_limit_seconds=patience,
        base=spec.base,
        batch_size=BatchSize(settings.batch_records_min, settings.batch_records_max),
    )


def _restored(spec: SubtaskSpec) -> CheckpointId:
    """Return the checkpoint that the subtask starts from; 0 for none."""
    return max((parse_snapshot_path(snapshot.state.path)[0] for snapshot in spec.snapshots), default=CheckpointId(0))


def _failure(error: BaseException) -> Failed:
    if isinstance(error, TwoPhaseCommitError):
        return Failed(type(error).__name__, str(error), error.restartable)
    return Failed(type(error).__name__, f"{type(error).__name__}: {error}", restartable=isinstance(error, Exception))
