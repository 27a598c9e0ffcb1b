"""The reason of a failure in Spark's account of it; pure functions of its text.

Spark wraps every failure several times, and the outermost line ("An error occurred while calling o80", "Could not
recover from a failed barrier ResultStage") is the same for all. What matters stands further in: the reason of the stage
that failed last, an executor that was lost, the last cause, a condition with a name such as [SPARK-24819].
"""

from __future__ import annotations

import re

_MOST_RECENT = re.compile(r"Most recent failure reason: (.*)", re.DOTALL)
_LOST_EXECUTOR = re.compile(r"ExecutorLostFailure \((executor [^)]*)\)(?: Reason: (.*))?")
_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((?P<host>\S+) executor (?P<executor>\S+)\)")
_CONDITION = re.compile(r"\[SPARK-\d+\][^\n]*|\[[A-Z][A-Z_.]{5,}\][^\n]*")
_CLASS = re.compile(r"^(?:Caused by: )?(?:[a-z]\w*\.)+(?P<name>[A-Z][\w$]*(?:Exception|Error)): ")
_UNTELLING = ("SparkException", "Py4JJavaError", "RuntimeException")
_LONGEST = 400


def reason_of(error: BaseException) -> str:
    """Return the line of Spark's account that says what happened."""
    return f"Spark says: {reason_in(str(error)) or type(error).__name__}"


def is_lost_executor(error: BaseException) -> bool:
    """Return whether the executor of a subtask is gone: killed, or its host with it."""
    return _LOST_EXECUTOR.search(str(error)) is not None


def reason_in(account: str) -> str:
    """Return what happened, and on which executor where that is said; empty where the account is."""
    lines = [line.strip() for line in account.splitlines() if line.strip() and not _is_frame(line)]
    for find in (_lost_executor, _no_program, _python_exit, _python_error, _condition, _cause, _most_recent, _first):
        if reason := find(account, lines):
            return _cut(reason + _where(account, reason))
    return ""


def _lost_executor(account: str, _lines: list[str]) -> str:
    found = _LOST_EXECUTOR.findall(account)
    return ": ".join(part.strip() for part in found[-1] if part) if found else ""


def _no_program(_account: str, lines: list[str]) -> str:
    """The last cause of it is the system's error, which does not name the program."""
    return next((_plain(line) for line in lines if "Cannot run program" in line), "")


def _python_exit(_account: str, lines: list[str]) -> str:
    """A worker that was killed: Spark names the exit, and nothing of what follows says more."""
    return _last([_plain(line) for line in lines if "Python worker exited" in line]).partition(". ")[0]


def _python_error(account: str, lines: list[str]) -> str:
    """The last line of a traceback of the Python worker: the lines of Python's own frames are indented."""
    if "Traceback (most recent call last)" not in account:
        return ""
    tracebacks = account.split("Traceback (most recent call last)")
    after = [line for line in tracebacks[-1].splitlines()[1:] if line.strip()]
    return next((line.strip() for line in after if not line.startswith(" ") and not _is_frame(line)), "")


def _condition(account: str, _lines: list[str]) -> str:
    return _last(_CONDITION.findall(account))


def _cause(_account: str, lines: list[str]) -> str:
    return _last([_plain(line) for line in lines if line.startswith("Caused by: ")])


def _most_recent(account: str, _lines: list[str]) -> str:
    found = _MOST_RECENT.search(account)
    return "" if found is None else next((line.strip() for line in found[1].splitlines() if line.strip()), "")


def _first(_account: str, lines: list[str]) -> str:
    telling = [line for line in lines if "Exception: " in line]
    texts = [_plain(line) for line in telling or lines]
    return next((line for line in texts if "An error occurred while calling" not in line), _last(texts[:1]))


def _where(account: str, reason: str) -> str:
    tasks = list(_TASK.finditer(account))
    if not tasks or "executor" in reason or tasks[-1]["executor"] == "driver":
        return ""
    return f" (executor {tasks[-1]['executor']} on {tasks[-1]['host']})"


def _plain(line: str) -> str:
    """Leave out the class of an exception, which says less than its message; but keep what kind of error it was."""
    line = line.removeprefix(": ")
    while match := _CLASS.match(line):
        if match["name"] not in _UNTELLING:
            return f"{match['name']}: {line[match.end() :]}"
        line = line[match.end() :]
    return line.removeprefix("Caused by: ")


def _is_frame(line: str) -> bool:
    return line.startswith(("\tat ", "\t... ", "    at "))


def _last(lines: list[str]) -> str:
    return lines[-1] if lines else ""


def _cut(text: str) -> str:
    text = text.rstrip(". ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
