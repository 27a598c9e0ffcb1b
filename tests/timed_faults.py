"""A fault at a time, as data: what is done to whom, when, and for how long. Torture and soak draw them from a seed.

A fault at a place of our code is `twopc.faults.armed_faults.ArmedFault`.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from enum import Enum

from twopc.faults.process import wake
from twopc.testing.broker_node import BrokerNode
from twopc.testing.local_broker import LocalBroker


class Target(Enum):
    """Whom a fault meets."""

    WORKER = "worker"
    DRIVER = "driver"
    COORDINATOR = "coordinator"
    BROKER = "broker"


class Action(Enum):
    """The action of a fault. A zombie is a worker that sleeps through the death of its driver, and wakes later."""

    KILL = "kill"
    TERMINATE = "terminate"
    PAUSE = "pause"
    ZOMBIE = "zombie"


BROKER_ACTIONS = (Action.KILL, Action.PAUSE)
"""What makes a broker go away at once, as no broker would by itself."""


@dataclass(frozen=True, slots=True)
class TimedFault:
    """A fault that begins so many seconds from the start; `seconds` is how long one sleeps, or stays away.

    `choice` chooses among several that are meant, by its remainder.
    """

    at: float
    action: Action
    target: Target
    seconds: float
    choice: int = 0

    def __str__(self) -> str:
        return f"{self.at:.1f} s: {self.action.value} {self.target.value} {self.choice} ({self.seconds:.1f} s)"


def send_away(node: BrokerNode, action: Action) -> None:
    """Kill a broker, or pause it."""
    if action is Action.KILL:
        node.kill()
    else:
        assert node.pid is not None, "only a broker that runs can be paused"
        os.kill(node.pid, signal.SIGSTOP)


def bring_back(broker: LocalBroker, node: BrokerNode, action: Action) -> None:
    """Undo what sent it away."""
    if action is Action.KILL:
        broker.start_node(node)
    elif node.pid is not None:
        wake(node.pid)
