"""Claims an attempt at the brokers, where several runs of a job have a ledger each and know nothing of one another.

The brokers are all that such runs share. An attempt is claimed there before anything is taken over: of all who
initialise its claim, one is the first, and is told so (epoch 0). And whoever has opened a transactional id looks for
later claims before it writes with it. So, of two attempts,

- both can't have one number;
- the later either finds every id that the earlier will ever write with, and fences it, or is found by the earlier.

`docs/decisions/0014-claims.md` has the argument, and `tests/kafka/test_two_ledgers.py` plays it.
"""

from __future__ import annotations

from twopc.errors import Fenced, Unavailable
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.transactions.lingering_transactions import traces
from twopc.kafka.transactions.naming import claim_id
from twopc.protocol.ids import AttemptId

BUDGET_SECONDS = 60.0


def claim(client: ControlClient, prefix: str, timeout_ms: int, attempt: AttemptId) -> None:
    """Make this attempt's number ours; raise Fenced if another run has it, or a later one."""
    refuse_successor(client, prefix, attempt)
    name = claim_id(prefix, attempt)
    tries = 0

    def ask() -> int:
        nonlocal tries
        tries += 1
        return client.init_producer_id(name, timeout_ms)

    if call_with_retry(ask, BUDGET_SECONDS) == 0:
        return
    if tries > 1:
        raise Unavailable(f"{name} may be ours or another's: the broker's answer was lost. Starting again will tell")
    raise Fenced(f"attempt {attempt} is that of another run, which started at the same time. {_ONE_RUN.format(prefix)}")


def refuse_successor(client: ControlClient, prefix: str, attempt: AttemptId) -> None:
    """Raise Fenced if a later attempt has begun to take over. To be asked whenever an id has been opened."""
    later = traces(client, prefix).newest
    if later > attempt:
        raise Fenced(
            f"another run has taken over from attempt {attempt}, as attempt {later}. {_ONE_RUN.format(prefix)}"
        )


_ONE_RUN = (
    "It may be on another host, or have another checkpoint folder (--checkpoint-dir); this run ends, and nothing is "
    "lost. A job, and the prefix {!r} of its transactional ids, can have one run at a time"
)
