"""Ports for local brokers."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from twopc.errors import Unavailable
from twopc.testing.ports import BLOCK_SIZE, RANGE, PortBlocks, free_port, free_ports, is_free

TAKES_A_PORT_AND_WAITS = (
    "import sys\nfrom twopc.testing.ports import free_port\nprint(free_port(), flush=True)\nsys.stdin.read()"
)
FORKS = """
import os
from twopc.testing.ports import BLOCK_SIZE, RANGE, free_port, is_free
own = free_port()
print(own, flush=True)
if os.fork() == 0:
    print(free_port(), flush=True)
    os._exit(0)
os.wait()
print(not is_free(own - (own - RANGE.start) % BLOCK_SIZE))
"""
SMALL = 10


@pytest.fixture
def place() -> Iterator[range]:
    """Room for three small blocks, which lies in a block of this process: nobody else meets the tests there."""
    with ExitStack() as held:
        while True:
            outer = PortBlocks()
            held.callback(outer.forget)
            start = block_of(outer.take(())).start + 1
            room = range(start, start + 3 * SMALL)
            if all(map(is_unused, room)):
                break
        yield room


def is_unused(port: int) -> bool:
    """Whether no connection is left of an earlier owner either: such a port can't be claimed for some time."""
    with socket.socket() as server:
        try:
            server.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def block_of(port: int) -> range:
    start = port - (port - RANGE.start) % BLOCK_SIZE
    return range(start, start + BLOCK_SIZE)


def test_a_port_that_a_server_listens_on_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_a_free_port_is_none_of_those_that_outgoing_connections_use() -> None:
    port = free_port()
    assert is_free(port)
    # The lowest first port of that range among the systems that Kafka is run on.
    assert port < 32_768


def test_a_free_port_is_none_of_those_to_avoid() -> None:
    only = free_port()
    assert free_port(avoid=set(range(65_536)) - {only}) == only
    with pytest.raises(Unavailable, match="no port is free"):
        free_port(avoid=range(65_536))


def test_several_free_ports_are_all_different_and_none_of_those_to_avoid() -> None:
    first = free_ports(3)
    assert len({*first, *free_ports(3, avoid=first)}) == 6


def test_processes_that_live_at_once_take_their_ports_from_different_blocks() -> None:
    command = [sys.executable, "-c", TAKES_A_PORT_AND_WAITS]
    others = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    ports = [free_port()]
    for other in others:
        assert other.stdout is not None
        ports.append(int(other.stdout.readline()))
    for other in others:
        other.communicate()
    assert len({block_of(port) for port in ports}) == 3


def test_a_block_that_is_claimed_is_nobody_elses_until_it_is_let_go(place: range) -> None:
    first, second = PortBlocks(place, SMALL), PortBlocks(place, SMALL)
    with closing_all(first, second):
        taken = {first.take(()) for _ in range(2 * (SMALL - 1))}
        others = {second.take(()) for _ in range(2 * (SMALL - 1))}
        assert not taken & others
        assert len(taken) == 2 * (SMALL - 1)
        assert len(others) == SMALL - 1
        first.forget()
        assert second.take(()) not in others


def test_a_port_is_given_again_when_no_other_is_free_the_oldest_first(place: range) -> None:
    blocks = PortBlocks(place, SMALL)
    with closing_all(blocks):
        given = [blocks.take(()) for _ in range(3 * (SMALL - 1))]
        assert len(set(given)) == len(given)
        assert [blocks.take(()) for _ in range(3)] == given[:3]


def test_a_port_of_a_claimed_block_that_a_stranger_listens_on_is_not_given(place: range) -> None:
    blocks = PortBlocks(place, SMALL)
    with closing_all(blocks), socket.create_server(("127.0.0.1", place.start + 1)):
        assert place.start + 1 not in {blocks.take(()) for _ in range(60)}


def test_all_ports_to_avoid_claim_no_block(place: range) -> None:
    blocks, other = PortBlocks(place, SMALL), PortBlocks(place, SMALL)
    with closing_all(blocks, other):
        with pytest.raises(Unavailable):
            blocks.take(place)
        assert len({other.take(()) for _ in range(60)}) == 3 * (SMALL - 1)


def test_a_forked_process_takes_from_blocks_of_its_own_and_ends_none_of_its_parents() -> None:
    said = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True).stdout
    own, of_the_child, still_claimed = said.split()
    assert block_of(int(own)) != block_of(int(of_the_child))
    assert still_claimed == "True"


def closing_all(*blocks: PortBlocks) -> ExitStack:
    stack = ExitStack()
    for each in blocks:
        stack.callback(each.forget)
    return stack
