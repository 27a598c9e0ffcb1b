"""What is made of Spark's accounts, which are as Spark 4.1 to 4.3 writes them."""

from __future__ import annotations

import pytest

from twopc.spark.failure_reason import is_lost_executor, reason_in

FRAMES = "\n\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)\n\t... 23 more\n"
CALLED = "An error occurred while calling o80.collectToPython.\n: "
BARRIER = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Could not recover from a failed barrier "
    "ResultStage. Most recent failure reason: Stage failed because barrier task ResultTask(0, 1) finished "
    "unsuccessfully.\n"
)

ACCOUNTS = {
    "an executor that was killed": (
        CALLED
        + BARRIER
        + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited with "
        "code 137" + FRAMES,
        "executor 1 exited caused by one of the running tasks: Command exited with code 137",
    ),
    "too few slots": (
        CALLED
        + "org.apache.spark.SparkException: [SPARK-24819]: Barrier execution mode does not allow run a barrier stage "
        "that requires more slots than the total number of slots in the cluster currently. Please init a new cluster."
        + FRAMES,
        "[SPARK-24819]: Barrier execution mode does not allow run a barrier stage that requires more slots than the "
        "total number of slots in the cluster currently. Please init a new cluster",
    ),
    "no Python on a worker": (
        CALLED
        + BARRIER
        + 'java.io.IOException: Cannot run program "env/bin/python": error=2, No such file or directory'
        + FRAMES
        + "Caused by: java.io.IOException: error=2, No such file or directory"
        + FRAMES,
        'IOException: Cannot run program "env/bin/python": error=2, No such file or directory',
    ),
    "a module that a worker lacks": (
        CALLED + BARRIER + "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "worker.py", line 100, in read_command\n    command = serializer._read_with_length(file)\n'
        "ModuleNotFoundError: No module named 'outside'\n" + FRAMES,
        "ModuleNotFoundError: No module named 'outside'",
    ),
    "a Python worker that was killed": (
        BARRIER
        + "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting x."
        + FRAMES,
        "Python worker exited unexpectedly (crashed)",
    ),
    "something else": (
        "org.apache.spark.SparkException: Job 3 cancelled part of cancelled job group",
        "Job 3 cancelled part of cancelled job group",
    ),
    "a session that was stopped": (
        "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
        "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number",
    ),
}


@pytest.mark.parametrize(("account", "reason"), ACCOUNTS.values(), ids=ACCOUNTS)
def test_of_a_long_account_the_line_is_told_that_says_what_happened(account: str, reason: str) -> None:
    assert reason_in(account) == reason


def test_an_executor_is_lost_only_where_the_account_says_so() -> None:
    lost = [kind for kind, (account, _reason) in ACCOUNTS.items() if is_lost_executor(RuntimeError(account))]
    assert lost == ["an executor that was killed"]


def test_the_executor_and_its_host_are_named_where_the_account_does() -> None:
    lost = "Lost task 1.0 in stage 0.0 (TID 1) (10.0.0.7 executor 3): java.io.IOException: x\nCaused by: disk is gone"
    assert reason_in(lost) == "disk is gone (executor 3 on 10.0.0.7)"


def test_an_account_without_words_has_no_reason() -> None:
    assert reason_in("\n") == ""
