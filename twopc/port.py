"""A port, where records come out of an operator: its only output, or a named one, as an entry of another's inputs."""

from __future__ import annotations

from typing import NamedTuple


class Port(NamedTuple):
    """An operator's output. Written as the operator's id; with the name behind a dot where it is a side output."""

    operator: str
    output: str = ""

    def __str__(self) -> str:
        return f"{self.operator}.{self.output}" if self.output else self.operator

    @classmethod
    def parse(cls, text: str) -> Port:
        """Return the port that is written so; no id has a dot, but a sink's, which is nobody's input."""
        operator, _, output = text.partition(".")
        return cls(operator, output)
