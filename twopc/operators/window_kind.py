"""The contract of the kinds of windows: which windows a record changes, and when each is over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

from twopc.errors import ConfigurationError
from twopc.operators.window_step import WindowAggregate
from twopc.operators.write_back_cache import HeldForm
from twopc.windows import Aligned, Window

WINDOW_BYTES = 120
"""About the bytes that an open window takes at hand, with a small value."""

REMEMBERED = -(2**63)
"""In the place of a start: what a kind of windows remembers of those that are over. It is no window, so never told."""

Open = dict[int, Any]
"""The open windows of a key by their starts: what a kind of windows holds of each."""


class Change(NamedTuple):
    """The change that a record makes to the open windows of its key: those that are new or other now, those gone."""

    put: Mapping[int, Any]
    gone: Collection[int] = ()


class WindowKind(HeldForm, Protocol):
    """One kind of windows, with what they come to."""

    @property
    def end_is_behind(self) -> int:
        """1 where the end of a window is the first millisecond behind it, 0 where it is its last."""

    def change(self, windows: Open, stamp: int, now: int, value: Any) -> Change | None:
        """Return what a record changes, None if it is late at the stream time `now`; change nothing.

        Raises what a function of the user's raises.
        """

    def begin(self, change: Change, now: int) -> Open:
        """Return what is held of a key of which nothing is, before a record that is seen at `now` makes this change."""

    def closes(self, start: int, held: Any) -> int:
        """Return the stream time at which the window is over, or what is remembered can go."""

    def take_over(self, windows: Open, at: int) -> Sequence[tuple[int, Any]]:
        """Take out what is over at this stream time; return the windows, in the order of their starts."""

    def window(self, start: int, held: Any) -> Window:
        """Return the window as it is told."""


def refuse_other_windows(step: WindowAggregate, start: int, end: int) -> NoReturn:
    """Raise for an open window that is none of this kind and size."""
    local = isinstance(step.windows, Aligned) and step.windows.timezone is not None
    raise ConfigurationError(
        f"{step}: a window from {start} to {end} is still open from before, and is none of these: take the kind of "
        f"windows that the job had{', and the rules of its timezone (tzdata)' if local else ''}, or give the operator "
        f"another name and give up what is open with --drop-states {step.name}"
    )
