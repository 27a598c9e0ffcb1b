"""The addresses that brokers say they have: whether somebody answers there, where no request gets through.

A client asks one of the servers that it was given, and talks to the brokers where these say that they are from then on
(`advertised.listeners`). Where that is no address of this machine's world, nothing works, and no error says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twopc.kafka.clients.reachability import reason_not_reachable


@dataclass(frozen=True, slots=True)
class NamedBroker:
    """A broker by its number, and the address that the brokers say it has."""

    node: int
    host: str
    port: int

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Unreached:
    """The brokers that were named and where nobody answers, each with the reason; `all_of_them`: no other was named."""

    reasons: tuple[tuple[NamedBroker, str], ...]
    all_of_them: bool

    def __str__(self) -> str:
        broker, reason = self.reasons[0]
        more = f" (and of {len(self.reasons) - 1} more)" if len(self.reasons) > 1 else ""
        return (
            f"they say that broker {broker.node} is at {broker.address}, and nobody answers there ({reason}){more}. "
            "That address is the broker's advertised.listeners: let it advertise one that this machine reaches, or "
            "name in bootstrap_servers a listener that does"
        )


def unreached(servers: str, named: Iterable[NamedBroker]) -> Unreached | None:
    """Return which of the named brokers can't be connected to although one of the servers can; None where it isn't so.

    A server is tried before and behind: where brokers come and go just now, nothing is said.
    """
    every = list(named)
    if not every or not _any_answers(servers):
        return None
    reasons = [(broker, reason) for broker in every if (reason := reason_not_reachable(broker.address)) is not None]
    if not reasons or not _any_answers(servers):
        return None
    return Unreached(tuple(reasons), len(reasons) == len(every))


def _any_answers(servers: str) -> bool:
    return any(reason_not_reachable(server) is None for server in map(str.strip, servers.split(",")))
