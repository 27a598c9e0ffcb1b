"""The subject that schemas of keys or values are registered under: Confluent's three strategies."""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from twopc.errors import ConfigurationError
from twopc.serde import SerdeContext


class SubjectStrategy(Enum):
    """Confluent's names in their short form.

    TOPIC (TopicNameStrategy): the topic with `-key` or `-value`. RECORD (RecordNameStrategy): the full name of the
    record. TOPIC_RECORD (TopicRecordNameStrategy): the topic, a hyphen, and that name.
    """

    TOPIC = "topic"
    RECORD = "record"
    TOPIC_RECORD = "topic-record"

    @classmethod
    def of(cls, named: str | SubjectStrategy) -> SubjectStrategy:
        try:
            return cls(named)
        except ValueError:
            known = ", ".join(repr(strategy.value) for strategy in cls)
            raise ConfigurationError(f"the subjects of a SchemaRegistry are {known}, not {named!r}") from None

    def subject(self, context: SerdeContext, name: str) -> str | None:
        """Return the subject for these keys or values of a record of this name; None where the name is not known."""
        match self:
            case SubjectStrategy.TOPIC:
                return f"{context.topic}-{'key' if context.is_key else 'value'}"
            case SubjectStrategy.RECORD:
                return name or None
            case SubjectStrategy.TOPIC_RECORD:
                return f"{context.topic}-{name}" if name else None
            case _:
                assert_never(self)
