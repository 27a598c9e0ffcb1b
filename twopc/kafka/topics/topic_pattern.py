"""The pattern of a source's input topics, matched against the topics that exist. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twopc.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Regular expressions of whole names: what matches `included`, and none of `excluded`."""

    included: str
    excluded: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.included!r}" + (f" without {', '.join(map(repr, self.excluded))}" if self.excluded else "")

    def matches(self, topic: str) -> bool:
        """Whether this is one of the topics."""
        return bool(re.fullmatch(self.included, topic)) and not any(re.fullmatch(each, topic) for each in self.excluded)

    def among(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Return the topics, sorted; raise ConfigurationError if there is none."""
        matching = tuple(sorted(filter(self.matches, topics)))
        if not matching:
            raise ConfigurationError(f"no input topic matches pattern {self}: create one, or correct the pattern")
        return matching


def checked_pattern(pattern: str, exclude: str | Sequence[str]) -> TopicPattern:
    """Return the pattern; raise ConfigurationError for what is no regular expression."""
    excluded = (exclude,) if isinstance(exclude, str) or not isinstance(exclude, Iterable) else tuple(exclude)
    for each in (pattern, *excluded):
        try:
            re.compile(each)
        except (re.error, TypeError) as error:
            raise ConfigurationError(f"KafkaSource can't take {each!r} for a pattern of topics: {error}") from error
    return TopicPattern(pattern, excluded)
