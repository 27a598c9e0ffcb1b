"""The membership of the current attempt: the subtasks that are attached, and their streams. Pure.

Invariant: a subtask has at most one session; its latest Attach wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from coordinator.events import Attached, SessionId
from twopc.protocol.figures import updated
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.job_description import SubtaskDescription
from twopc.protocol.messages import EndOfInput, Progress
from twopc.protocol.record_errors import RecordErrorKind

ERROR_KINDS_MAX = 1_000
"""How many kinds of errors of records are told apart in an attempt."""


@dataclass(slots=True)
class Membership:
    """The attached subtasks of one attempt.

    `at_end` are those that have read their bounded input to the end, that of all stages; `progress` is what each said
    last, for people.
    """

    parallelism: int
    at_end: set[SubtaskIndex] = field(default_factory=set)
    progress: dict[SubtaskIndex, Progress] = field(default_factory=dict)
    _sessions: dict[SessionId, Attached] = field(default_factory=dict)
    _session_of: dict[SubtaskIndex, SessionId] = field(default_factory=dict)
    _stages_ended: dict[SubtaskIndex, int] = field(default_factory=dict)
    _processes: dict[SubtaskIndex, tuple[str, int]] = field(default_factory=dict)
    _error_kinds: set[tuple[str, str, str]] = field(default_factory=set)

    def attach(self, attached: Attached) -> Attached | None:
        """Register a subtask's new session; return the one that it replaces, if any."""
        before = self._session_of.get(attached.subtask)
        replaced = None if before is None else self._sessions.pop(before)
        self._sessions[attached.session] = attached
        self._session_of[attached.subtask] = attached.session
        self._processes[attached.subtask] = (attached.host, attached.pid)
        if attached.end_of_input:
            self.at_end.add(attached.subtask)
        return replaced

    def end(self, subtask: SubtaskIndex, end: EndOfInput) -> bool:
        """Enter how much of its input a subtask has read; return whether it is the whole, and that is news."""
        if end.following:
            self._stages_ended[subtask] = max(self._stages_ended.get(subtask, 0), end.stage + 1)
            return False
        is_news = subtask not in self.at_end
        self.at_end.add(subtask)
        return is_news

    def news(self, errors: Iterable[RecordErrorKind]) -> list[RecordErrorKind]:
        """Return the errors of records of whose kind no subtask of the attempt had any before."""
        news = []
        for error in errors:
            kind = (error.source, error.operator, error.error_type)
            if kind not in self._error_kinds and len(self._error_kinds) < ERROR_KINDS_MAX:
                self._error_kinds.add(kind)
                news.append(error)
        return news

    def report(self, subtask: SubtaskIndex, progress: Progress) -> None:
        """Keep what a subtask has said last, and of the figures that this report does not have what it said before."""
        before = self.progress.get(subtask)
        figures = updated(before.figures if before else None, progress.figures)
        self.progress[subtask] = replace(progress, figures=figures)

    def is_another_process(self, attached: Attached) -> bool:
        """Whether another process has been this subtask before in this attempt."""
        process = (attached.host, attached.pid)
        return self._processes.get(attached.subtask, process) != process

    def detach(self, session: SessionId) -> Attached | None:
        """Forget a session; return it, None if it was no longer a member."""
        gone = self._sessions.pop(session, None)
        if gone is not None:
            del self._session_of[gone.subtask]
        return gone

    def find(self, session: SessionId) -> Attached | None:
        return self._sessions.get(session)

    def host_of(self, subtask: SubtaskIndex) -> str:
        """The machine that it attached from last."""
        return self._processes.get(subtask, ("an unknown host", 0))[0]

    def describe(self, index: int, committed: CheckpointId) -> SubtaskDescription:
        """One subtask, for people."""
        subtask = SubtaskIndex(index)
        host, pid = self._processes.get(subtask, ("", 0))
        return SubtaskDescription(
            subtask=subtask,
            attached=subtask in self._session_of,
            at_end=subtask in self.at_end,
            pid=pid,
            host=host,
            progress=self.progress.get(subtask),
            committed=committed,
        )

    @property
    def sessions(self) -> tuple[SessionId, ...]:
        return tuple(self._sessions)

    @property
    def attached(self) -> int:
        return len(self._sessions)

    @property
    def all_attached(self) -> bool:
        return len(self._sessions) == self.parallelism

    @property
    def all_at_end(self) -> bool:
        return len(self.at_end) == self.parallelism

    @property
    def stages_at_end(self) -> int:
        """The number of stages, from the first on, that all subtasks have read, where another follows; 0 else."""
        unended = [self._stages_ended.get(SubtaskIndex(n), 0) for n in range(self.parallelism) if n not in self.at_end]
        return min(unended, default=0)
