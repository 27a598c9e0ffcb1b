"""The input that an attempt does not read, as it is found while the attempt runs. Values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twopc.source import Split


@dataclass(frozen=True, slots=True)
class HiddenInput:
    """Input that is written and can't be read yet, behind the position `first` of a split.

    `cause` says for people what hides how much; nothing where nobody asked for it.
    """

    split: str
    first: Any
    cause: str = ""

    @property
    def place(self) -> tuple[str, Any]:
        return self.split, self.first


Places = frozenset[tuple[str, Any]]
"""Where input was hidden before: ids of splits, each with a position."""


@dataclass(frozen=True, slots=True)
class KeysNow:
    """Where the keys of the input are: `apart` says of keyed operators why keys of theirs have several states.

    With `more` there may be more to say when more records are there.
    """

    apart: tuple[str, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True)
class InputNow:
    """What an attempt does not read: `added` splits, which the next attempt reads, and `hidden` input.

    `refused` says why what is new can't be read, or isn't. `keys` is None where nobody asked for it.
    """

    added: tuple[Split, ...] = ()
    refused: str = ""
    hidden: tuple[HiddenInput, ...] = ()
    keys: KeysNow | None = None
