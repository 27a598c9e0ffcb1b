"""The transactions of earlier attempts: finds them by the shape of their ids, and ends them by taking the ids over.

Invariant: only ids of *earlier* attempts are ever taken over. So a driver that was paused in here, and wakes when a
newer attempt runs, does that attempt no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from twopc.faults.points import CrashPoint, reached
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.transactions.naming import SlotName, parse_claim, parse_transactional_id
from twopc.protocol.attempts import Traces
from twopc.protocol.ids import NO_ATTEMPT, AttemptId

BUDGET_SECONDS = 60.0

FENCED_ATTEMPTS = 8
"""How many of the last attempts that left ids have all of them taken over at recovery, open or not.

That fences their producers before they open anything, a run with another ledger among them. It need not go back for
ever: a process of an older attempt can commit nothing, since no coordinator completes a checkpoint of it, and what it
still opens is found as open by the next `abort_open`. So the work at a start stays bounded, however often a job was
restarted.
"""

_OPEN = (
    BrokerState.ONGOING,
    BrokerState.PREPARE_COMMIT,
    BrokerState.PREPARE_ABORT,
    BrokerState.PREPARE_EPOCH_FENCE,
)

_Listed = list[tuple[str, SlotName, BrokerState]]
"""The transactional ids of a job, in order, parsed, and the state of each."""


def fence_earlier(client: ControlClient, prefix: str, timeout_ms: int, attempt: AttemptId) -> list[str]:
    """Take over every open id of an earlier attempt, and every id of the last few; return those that were open.

    That aborts what is open and fences every producer concerned. Everything worth keeping must be settled.
    """
    listed = _list(client, prefix)
    earlier = sorted({name.attempt for _, name, _ in listed if name.attempt < attempt})
    oldest = min(earlier[-FENCED_ATTEMPTS:], default=attempt)
    return _take_over(
        client,
        listed,
        timeout_ms,
        lambda name, state: name.attempt < attempt and (state in _OPEN or name.attempt >= oldest),
    )


def _list(client: ControlClient, prefix: str) -> _Listed:
    return _slots_of(prefix, call_with_retry(client.list_transactions, BUDGET_SECONDS))


def _slots_of(prefix: str, states: Mapping[str, BrokerState]) -> _Listed:
    parsed = ((each, parse_transactional_id(prefix, each), states[each]) for each in sorted(states))
    return [(transactional_id, name, state) for transactional_id, name, state in parsed if name is not None]


def abort_open(client: ControlClient, prefix: str, timeout_ms: int, attempt: AttemptId) -> list[str]:
    """Take over open ids only: a zombie may have opened one since. One request a broker, if there is none."""
    listed = _list(client, prefix)
    return _take_over(client, listed, timeout_ms, lambda name, state: name.attempt < attempt and state in _OPEN)


def ongoing_ids(client: ControlClient, prefix: str) -> dict[str, SlotName]:
    """Return the ids of the prefix, of whatever attempt, of whose transaction nobody has begun the end.

    One that is being committed is not among them: its producer may use the id again before who asks takes it over.
    """
    return {each: name for each, name, state in _list(client, prefix) if state is BrokerState.ONGOING}


def take_over(client: ControlClient, ids: Iterable[str], timeout_ms: int) -> list[str]:
    """Abort what is open under these ids, and fence its producers; return them. No decision may name any of it."""
    taken = []
    for each in ids:
        _initialise(client, each, timeout_ms)
        taken.append(each)
    return taken


def traces(client: ControlClient, prefix: str) -> Traces:
    """Return which attempts have left ids of the prefix, as far as the brokers remember."""
    states = call_with_retry(client.list_transactions, BUDGET_SECONDS)
    slots = [(name.attempt, state) for _, name, state in _slots_of(prefix, states)]
    return Traces(
        claimed=max(filter(None, (parse_claim(prefix, each) for each in states)), default=NO_ATTEMPT),
        written=max((attempt for attempt, _ in slots), default=NO_ATTEMPT),
        open=max((attempt for attempt, state in slots if state in _OPEN), default=NO_ATTEMPT),
    )


def _take_over(
    client: ControlClient, listed: _Listed, timeout_ms: int, chosen: Callable[[SlotName, BrokerState], bool]
) -> list[str]:
    lingering = []
    for transactional_id, name, state in listed:
        if not chosen(name, state):
            continue
        _initialise(client, transactional_id, timeout_ms)
        reached(CrashPoint.DRIVER_IN_SWEEP)
        if state in _OPEN:
            lingering.append(transactional_id)
    return lingering


def _initialise(client: ControlClient, transactional_id: str, timeout_ms: int) -> None:
    """Return when it is done: the broker says CONCURRENT_TRANSACTIONS while it still aborts."""
    call_with_retry(lambda: client.init_producer_id(transactional_id, timeout_ms), BUDGET_SECONDS)
