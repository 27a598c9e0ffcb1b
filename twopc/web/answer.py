"""What is asked over HTTP, and what is answered. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `path` is without the host, decoded; of several parameters with one name the first counts."""

    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    body: bytes
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK

    @classmethod
    def of_text(cls, text: str, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        """Return a line of text."""
        return cls(f"{text}\n".encode(), TEXT, status)


@dataclass(frozen=True, slots=True)
class EventStream:
    """An answer that goes on: server-sent events, as they are written on the wire, until nobody reads them.

    An empty one is nothing: it gives the server the moment to end.
    """

    events: Iterator[bytes]


class Pages(ABC):
    """Some of what a server answers."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The paths, as whoever asks for another one is told them."""

    @property
    def open_names(self) -> tuple[str, ...]:
        """Those among them that anybody may ask for, where a token is wanted for all others."""
        return ()

    @abstractmethod
    def answer(self, question: Question) -> Answer | EventStream | None:
        """Return the answer, None where the path is none of these."""
