"""A proxy that understands Kafka's framing: it finds single requests and replies by their API key.

What is lost is lost with its connection, as when a broker or a network dies: the client hears at once that it must ask
again, and can't know whether its request was applied.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum

from twopc.faults.producer_request import with_timeout
from twopc.faults.tcp_proxy import Connection, Direction, Proxy

CONCURRENT_TRANSACTIONS = 51
_LENGTH = 4


class Api(IntEnum):
    """The API keys that rules are about."""

    PRODUCE = 0
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    DESCRIBE_TRANSACTIONS = 65


class Fate(Enum):
    """The fate of a message that a rule is about."""

    DROP = "lost, with its connection"
    DELAY = "late"
    PASS = "forwarded"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Message:
    """One request or reply; `body` begins with the correlation id in a reply, with the API key in a request."""

    api: int
    version: int
    direction: Direction
    body: bytes
    client_port: int

    @property
    def error_code(self) -> int:
        """Of a reply to EndTxn up to version 2: after correlation id and throttle time."""
        return int.from_bytes(self.body[8:10], "big", signed=True)


@dataclass(frozen=True, slots=True)
class Rule:
    """The treatment of a kind of message, so many times; `error` picks replies to EndTxn by their error code.

    `then` is called with the message, before its fate is carried out.
    """

    api: Api
    direction: Direction
    fate: Fate
    times: int = 1
    delay_seconds: float = 0.0
    error: int | None = None
    then: Callable[[Message], None] = lambda _: None

    def is_about(self, message: Message) -> bool:
        return (
            message.api == self.api
            and message.direction is self.direction
            and (self.error is None or message.error_code == self.error)
        )


class KafkaProxy(Proxy):
    """A proxy in front of one broker."""

    def __init__(self, target: int, port: int | None = None) -> None:
        super().__init__(target, port)
        self._rules: list[tuple[Rule, list[None]]] = []
        self._rules_lock = threading.Lock()
        self._asked: dict[tuple[Connection, int], tuple[int, int]] = {}
        self._timeout_ms: int | None = None

    def add(self, *rules: Rule) -> None:
        """From now on, these hold too, each until it has been used up; of several the first that fits counts."""
        with self._rules_lock:
            self._rules.extend((rule, [None] * rule.times) for rule in rules)

    def clear(self) -> None:
        """Forget all rules."""
        with self._rules_lock:
            self._rules.clear()

    def expire_transactions_after(self, timeout_ms: int) -> None:
        """Have the broker give every producer that is initialised from now on this time-out, whatever it asks for."""
        self._timeout_ms = timeout_ms

    def _pieces(self, source: socket.socket) -> Iterator[bytes]:
        held = b""
        while piece := source.recv(1 << 20):
            held += piece
            while len(held) >= _LENGTH and len(held) >= (whole := _LENGTH + int.from_bytes(held[:_LENGTH], "big")):
                yield held[:whole]
                held = held[whole:]

    def _passed(self, connection: Connection, direction: Direction, piece: bytes) -> bytes | None:
        message = self._message(connection, direction, piece[_LENGTH:])
        if message is None:
            return piece
        rule = self._take(message)
        if rule is not None:
            rule.then(message)
            if rule.fate is Fate.DELAY:
                time.sleep(rule.delay_seconds)
            elif rule.fate is Fate.DROP:
                return None
        asks_for_timeout = message.api == Api.INIT_PRODUCER_ID and direction is Direction.TO_TARGET
        if asks_for_timeout and self._timeout_ms is not None:
            return piece[:_LENGTH] + with_timeout(message.body, self._timeout_ms)
        return piece

    def _message(self, connection: Connection, direction: Direction, body: bytes) -> Message | None:
        if direction is Direction.TO_TARGET:
            api, version = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
            self._asked[connection, int.from_bytes(body[4:8], "big")] = (api, version)
        else:
            asked = self._asked.pop((connection, int.from_bytes(body[:4], "big")), None)
            if asked is None:
                return None
            api, version = asked
        return Message(api, version, direction, body, connection.client_port)

    def _take(self, message: Message) -> Rule | None:
        with self._rules_lock:
            for rule, uses in self._rules:
                if uses and rule.is_about(message):
                    uses.pop()
                    return rule
        return None
