"""The contract of a Kafka broker for tests and demos, whatever it runs in.

One contract suite (tests/testing/test_broker.py) holds for every implementation:

- `start` returns when clients can use the broker, transactions included; starting a running broker changes nothing.
- `stop` is orderly, `kill` is not (SIGKILL); both return when the broker is gone, and are idempotent.
- Data and address survive both: the next `start` shows the same records at the same `bootstrap_servers`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Broker(ABC):
    """A Kafka broker, or a cluster of them, that this process may start and stop."""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """host:port, comma-separated; the same over the broker's whole life."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def kill(self) -> None: ...

    def restart(self) -> None:
        self.close()
        self.start()

    def close(self) -> None:
        """Stop, and give back what an ended broker still holds; there is no start after it."""
        self.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
