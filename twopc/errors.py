"""The exceptions that a user meets, and what each asks of the reader.

    TwoPhaseCommitError
     + ConfigurationError   fix the setting that the message names
     + UserCodeError        fix the record or the function that the message names
     + Unavailable          a broker or the coordinator can't be reached now: try again
     + Fenced               a newer attempt owns the job: stop quietly
     + CheckpointDeclined   this checkpoint failed; the job goes on
     + CheckpointCorrupted  a checkpoint can't be read: choose another by hand
     + TransactionLost      a pre-committed transaction is gone: output is missing; a person decides
     + GlobalCommitFailed   a sink's global committer could not commit a checkpoint: the message says why
     + NotJudged            a check could not be made: the message says what it lacked
     + ProtocolViolation    a bug, ours or the peer's: stop and report it

A message is one paragraph that says what happened and what to do. `exit_code` is what the command line exits with.
"""

from __future__ import annotations

DEBUG_VARIABLE = "TWOPC_DEBUG"
"""Set, it lets tracebacks be shown, of user functions too; `twopc --debug` sets it."""


class TwoPhaseCommitError(Exception):
    """The root of all errors that this package raises on purpose."""

    exit_code = 1
    #: Whether a new attempt of the job could succeed without anybody changing anything.
    restartable = True


class ConfigurationError(TwoPhaseCommitError):
    """A setting, a job or an argument can't work; the message names it."""

    exit_code = 2
    restartable = False


class UserCodeError(TwoPhaseCommitError):
    """A record could not be decoded or encoded, or a user function raised on it; the message names the record."""

    restartable = False


class Unavailable(TwoPhaseCommitError):
    """A broker or the coordinator can't be reached now; trying again may help."""


class InputGone(TwoPhaseCommitError):
    """Input is not there any more. The next attempt finds out whether the job goes on without it."""


class Fenced(TwoPhaseCommitError):
    """A newer attempt, or another coordinator, owns the job: this one must stop."""

    exit_code = 4
    restartable = False


class CheckpointDeclined(TwoPhaseCommitError):
    """A subtask could not take part in one checkpoint; the job goes on with the next."""


class CheckpointCorrupted(TwoPhaseCommitError):
    """A stored checkpoint or fact can't be trusted; the message names the file."""

    exit_code = 5
    restartable = False


class NewerFormat(CheckpointCorrupted):
    """A stored fact is of a format that a newer version of twopc has written."""


class ForeignFile(CheckpointCorrupted):
    """A stored file is whole, and does not belong where it is: of another job, checkpoint, place or program."""


class TransactionLost(TwoPhaseCommitError):
    """A pre-committed transaction can't be committed any more; the message names what output is missing."""

    exit_code = 3
    restartable = False


class GlobalCommitFailed(TwoPhaseCommitError):
    """A sink's global committer could not commit a completed checkpoint; a new attempt tries again where that may help.

    It has the exit code of what kept it, where that is an error of this package.
    """

    def __init__(self, message: str, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.is_loss = isinstance(cause, TransactionLost)
        """Whether output of the checkpoint is gone."""
        if isinstance(cause, TwoPhaseCommitError):
            self.restartable, self.exit_code = cause.restartable, cause.exit_code


class NotJudged(TwoPhaseCommitError):
    """A verification or a drill could not be made: nothing is known to be wrong, and nothing to be right."""

    exit_code = 2
    restartable = False


class ProtocolViolation(TwoPhaseCommitError):
    """A rule of the checkpoint protocol was broken: a bug. Stop, keep the checkpoint folder, report it."""

    restartable = False
