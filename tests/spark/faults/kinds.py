"""The faults of a job on a cluster: each hurts somebody, and undoes it when its context is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

import psutil

from tests.spark.cluster import SparkDaemon
from tests.spark.faults.cluster_job import ClusterJob
from tests.spark.zombies import wait_until_gone


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in words, and its context, which gives the moment of the blow (time.time()).

    `meanwhile` is what happens besides before it is undone, once the job goes on.
    """

    name: str
    happens: Callable[[ClusterJob], AbstractContextManager[float]]
    meanwhile: tuple[Fault, ...] = ()


@contextmanager
def executor_killed(job: ClusterJob) -> Iterator[float]:
    executor = job.executor(0)
    struck = time.time()
    executor.kill()
    yield struck


@contextmanager
def worker_killed(job: ClusterJob) -> Iterator[float]:
    """A worker daemon and the executor with a subtask that it started: as if their machine had gone."""
    executor = job.executor(0)
    worker = _worker_of(job, executor)
    struck = time.time()
    worker.kill()
    executor.kill()
    yield struck
    job.cluster.start_worker(worker)


@contextmanager
def executor_killed_without_a_spare_slot(job: ClusterJob) -> Iterator[float]:
    busy = [job.executor(subtask) for subtask in range(len(job.subtasks()))]
    idle = [each for each in job.cluster.workers if not set(busy) & set(each.process.children(recursive=True))]
    for worker in idle:
        worker.stop()
    struck = time.time()
    busy[0].kill()
    yield struck
    for worker in idle:
        job.cluster.start_worker(worker)


@contextmanager
def master_killed(job: ClusterJob) -> Iterator[float]:
    struck = time.time()
    job.cluster.master.kill()
    job.cluster.start_master()
    job.cluster.await_slots(len(job.cluster.workers))
    yield struck


@contextmanager
def driver_killed(job: ClusterJob) -> Iterator[float]:
    jvm = job.jvm()
    struck = time.time()
    job.driver.kill()
    wait_until_gone(jvm)
    job.start_driver()
    yield struck


@contextmanager
def drivers_jvm_killed(job: ClusterJob) -> Iterator[float]:
    jvm = job.jvm()
    struck = time.time()
    jvm.kill()
    yield struck


def stopped(
    seconds: float, whom: Callable[[psutil.Process], list[psutil.Process]]
) -> Callable[[ClusterJob], AbstractContextManager[float]]:
    """Return what stops, for so long, those that `whom` finds beside the executor of a subtask."""

    @contextmanager
    def happens(job: ClusterJob) -> Iterator[float]:
        sleepers = whom(job.executor(0))
        struck = time.time()
        for each in sleepers:
            each.send_signal(signal.SIGSTOP)
        try:
            yield struck
            time.sleep(max(0.0, struck + seconds - time.time()))
        finally:
            for each in reversed(sleepers):
                with suppress(psutil.NoSuchProcess):
                    each.send_signal(signal.SIGCONT)

    return happens


def the_jvm(executor: psutil.Process) -> list[psutil.Process]:
    return [executor]


def all_of_it(executor: psutil.Process) -> list[psutil.Process]:
    """The JVM, the daemon that forks its Python workers, and those."""
    return [executor, *executor.children(recursive=True)]


@contextmanager
def broker_killed(job: ClusterJob) -> Iterator[float]:
    """The one that coordinates the job's consumer group: whoever waits for it must find another."""
    node = job.broker.nodes[job.group_coordinator() - 1]
    struck = time.time()
    node.kill()
    yield struck
    job.broker.start_node(node)


@contextmanager
def broker_stopped(job: ClusterJob) -> Iterator[float]:
    """It stands still, with all its connections open, until the others have taken over from it."""
    pid = job.broker.nodes[-1].pid
    assert pid is not None, "the node has ended"
    struck = time.time()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield struck
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def brokers_restarted(job: ClusterJob) -> Iterator[float]:
    """One after the other, each when the one before is back, as for an upgrade."""
    struck = time.time()
    for node in job.broker.nodes:
        node.terminate()
        job.broker.start_node(node)
    yield struck


def _worker_of(job: ClusterJob, executor: psutil.Process) -> SparkDaemon:
    parents = executor.parents()
    return next(each for each in job.cluster.workers if each.pid is not None and each.process in parents)


KILLS = (
    Fault("an executor killed", executor_killed),
    Fault("a worker daemon and its executor killed", worker_killed),
    Fault("an executor killed, all slots needed", executor_killed_without_a_spare_slot),
    Fault("the master killed, back with recovery FILESYSTEM", master_killed),
    Fault("the driver's JVM killed", drivers_jvm_killed),
    Fault("the driver killed, the same command again", driver_killed),
)
BROKERS = (
    Fault("one broker of three killed, then back", broker_killed),
    Fault("one broker of three stopped, then awake", broker_stopped),
)
ROLLING = (Fault("all brokers restarted, one after the other", brokers_restarted),)
STOPS = (
    Fault(
        "JVM, daemon and Python stopped for 150 s",
        stopped(150.0, all_of_it),
        meanwhile=(
            Fault("an executor's JVM stopped for 60 s", stopped(60.0, the_jvm)),
            Fault("JVM, daemon and Python stopped for 60 s", stopped(60.0, all_of_it)),
        ),
    ),
)
