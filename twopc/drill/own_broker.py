"""The Kafka that a drill has started itself, and what may be done to it; nobody else's broker is ever struck."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from twopc.faults.kafka_proxy import Api, Fate, KafkaProxy, Rule
from twopc.faults.process import is_stopped
from twopc.faults.tcp_proxy import Direction
from twopc.testing.local_broker import LocalBroker

TRANSACTION_TIMEOUT_SECONDS = 10.0
"""Longer than any fault lasts, so that nothing expires that is not to."""

_SLOW_SECONDS = 0.2
_SLOW = (Api.PRODUCE, Api.END_TXN, Api.ADD_PARTITIONS_TO_TXN, Api.DESCRIBE_TRANSACTIONS)

Undo = Callable[[], None]


class OwnBroker:
    """A local Kafka behind a proxy, which all clients go through; enter it, and it serves."""

    def __init__(self, folder: Path) -> None:
        self._broker = LocalBroker(folder, proxied=True, light=True)
        route = self._broker.proxy_routes[0]
        self._proxy = KafkaProxy(route.listens, route.advertised)
        self._running = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self._proxy)
            starting.enter_context(self._broker)
            self._running = starting.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.proxied_servers

    def let_transactions_expire(self) -> None:
        """From now on the broker aborts a transaction at this age, whatever its producer asks for."""
        self._proxy.expire_transactions_after(int(1000 * TRANSACTION_TIMEOUT_SECONDS))

    def crash(self) -> None:
        """End it as a power cut does, and start it again."""
        self._broker.kill()
        self._broker.start()

    def pause(self) -> Undo:
        """Stop it where it stands; return what lets it go on."""
        pids = [node.pid for node in self._broker.nodes if node.pid is not None]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

        def wake() -> None:
            for pid in pids:
                if is_stopped(pid):
                    os.kill(pid, signal.SIGCONT)

        return wake

    def slow_down(self) -> Undo:
        """Have some of its answers come late; return what ends that."""
        self._proxy.add(
            *(Rule(api, Direction.TO_CLIENT, Fate.DELAY, times=1_000, delay_seconds=_SLOW_SECONDS) for api in _SLOW)
        )
        return self._proxy.clear
