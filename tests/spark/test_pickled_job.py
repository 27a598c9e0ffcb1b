"""A job that no file defines is pickled; what keeps it from that is named."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from twopc import Job, KafkaSink, KafkaSource
from twopc.errors import ConfigurationError
from twopc.graph import JobDefinition
from twopc.operators import Map
from twopc.spark.pickled_job import PickledJob


@pytest.fixture(autouse=True)
def _path(forgotten_loads: None) -> Iterator[None]:
    before = list(sys.meta_path)
    yield
    sys.meta_path[:] = before


def job_with(function: Callable[[Any], Any]) -> JobDefinition:
    return Job("words").source(KafkaSource("in")).map(function).sink(KafkaSink("out")).definition()


def test_a_function_travels_with_the_values_that_it_uses() -> None:
    suffix = "!"
    (step,) = PickledJob.of(job_with(lambda value: value + suffix)).load().steps.values()
    assert isinstance(step, Map)
    assert step.function("a") == "a!"


def test_a_variable_that_can_not_travel_is_named_with_the_function_that_uses_it() -> None:
    lock = threading.Lock()

    def guarded(value: str) -> str:
        with lock:
            return value

    def shout(value: str) -> str:
        return guarded(value).upper()

    named = (
        r"guarded \(test_pickled_job.py:\d+\) uses lock, a _thread.lock: make it inside the function, or put the job"
    )
    with pytest.raises(ConfigurationError, match=named):
        PickledJob.of(job_with(shout))
