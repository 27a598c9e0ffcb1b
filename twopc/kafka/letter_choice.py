"""Which dead letters of a topic are replayed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from twopc.errors import ConfigurationError
from twopc.kafka.found_letter import FoundLetter
from twopc.kafka.place import Place
from twopc.listing import listed
from twopc.repartition import OWN_SUFFIX

CAUSES = "exception."
"""What may be shortened of a letter, and its record is whole: how the names of those texts begin."""


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """The letters of these places, or, where none is named, all that somebody wants; `replayed` were so before.

    One that can't be replayed is refused where it is named, and else left out: `left_out` counts them by why.
    """

    named: frozenset[Place]
    replayed: frozenset[Place]
    again: bool = False
    is_wanted: Callable[[FoundLetter], bool] = lambda _: True
    left_out: Counter[str] = field(default_factory=Counter)

    def of(self, letters: Iterable[FoundLetter]) -> Iterator[FoundLetter]:
        """Yield those that are replayed, in their order; raise ConfigurationError for a named one that can't be."""
        missing = set(self.named)
        for letter in letters:
            missing.discard(letter.place)
            if letter.place not in self.named if self.named else not self.is_wanted(letter):
                continue
            why = self._why_not(letter)
            if why is None:
                yield letter
            elif self.named:
                raise ConfigurationError(f"letter {letter.place} {why}")
            else:
                self.left_out[why] += 1
        if missing:
            raise ConfigurationError(f"there is no dead letter at {listed(sorted(map(str, missing)))}")

    def _why_not(self, letter: FoundLetter) -> str | None:
        if letter.place in self.replayed and not self.again:
            return "was replayed before: --again replays it once more"
        if letter.origin is None:
            return "does not say where its record came from"
        if letter.origin.partition.topic.endswith(OWN_SUFFIX):
            return "is of a topic of the job's own (key_by), which nobody else writes to: mend its cause in the input"
        if any(not each.strip().startswith(CAUSES) for each in letter.shortened.split(",") if each):
            return "has not all of its record any more, which was too long for a letter"
        return None
