"""The termination of this process itself, told apart from what a user function raises.

A signal's handler raises in whatever the main thread does just then, a user function perhaps. Only what is raised here
ends the process; a `SystemExit` or `KeyboardInterrupt` of a function's own is an error of its record.
"""

from __future__ import annotations


class Terminated(SystemExit):
    """SIGTERM has come."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has come, and nobody waits for an orderly end any more."""


TERMINATION = (Terminated, Interrupted)
