"""Breaks of what is done about a broker's answers, its forgetting, and its topics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import tests.simulation.kafka_clients
import twopc.driver.lost_transactions
import twopc.driver.recovery
import twopc.kafka.transactions.resume
import twopc.kafka.transactions.transaction_verdict
from tests.simulation.mutants import EXPIRING, Mutant, instead
from tests.simulation.source import SimSource
from tests.simulation.transaction_tables import BUMPING_END_TXN
from twopc.driver.lost_transactions import fate
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.kafka.transactions.transaction_verdict import Witness
from twopc.protocol.healing import Fate
from twopc.sink import Outcome, Settled

ANSWERED = {"broker_refuses": 0.0, "broker_reply_lost": 0.0, "broker_away_every_ms": 0, "prepare_ms": 0}


@contextmanager
def _resumed_blindly() -> Iterator[None]:
    """Resume as others do: with the newer EndTxn, not asking what is there, and taking a no for a loss."""

    def turn(client: Any, committable: Any, prepared: Any, *rest: Any) -> Any:
        said = client.end_transaction(prepared.transactional_id, prepared.producer_id, prepared.producer_epoch)
        return Settled(committable, Outcome.COMMITTED if said else Outcome.LOST, "the broker said so")

    clients = tests.simulation.kafka_clients
    with (
        patch.object(twopc.kafka.transactions.resume, "_turn", turn),
        patch.object(clients, "END_TXN_VERSION", BUMPING_END_TXN),
    ):
        yield


def _restored_as_it_was(context: Any, started: Any, *settled: Any) -> Any:
    yield from ()
    return started.restored


def _fate_of_all(settled: Settled) -> Fate:
    return fate(replace(settled, holds_output=True))


DELETING = {**EXPIRING, "input_deleted_every_ms": 200}


MUTANTS_OF_BROKER = (
    Mutant("resumed by the other version of EndTxn whose error code decides", _resumed_blindly, ANSWERED),
    Mutant(
        "the witness is not asked",
        instead(twopc.kafka.transactions.resume, "_witness", lambda client, prepared: Witness.UNKNOWN),
        {"ids_forgotten_every_ms": 500, "fault_phase_ms": 5_000},
    ),
    Mutant(
        "a topic that was recreated is committed into",
        instead(twopc.kafka.transactions.transaction_verdict, "_judge_topics", lambda before, now: None),
        {"topic_recreated_every_ms": 500},
        timeouts=True,
    ),
    Mutant(
        "an input topic that was recreated is read on",
        instead(TopicIdentity, "check", lambda identity, checkpoint_id: None),
        {"input_recreated_every_ms": 500, "fault_phase_ms": 5_000},
        1_000,
        timeouts=True,
    ),
    Mutant(
        "a loss is healed though its input is gone",
        instead(SimSource, "unreadable", lambda source, positions: {}),
        DELETING,
        1_000,
        timeouts=True,
    ),
    Mutant(
        "what was decided to be written again is not asked for again",
        instead(twopc.driver.recovery, "rewritten", _restored_as_it_was),
        {**DELETING, "quiet": ()},
        3_000,
        timeouts=True,
    ),
    Mutant(
        "a transaction without output counts as a commit behind a loss",
        instead(twopc.driver.lost_transactions, "fate", _fate_of_all),
        {"quiet": (2, 3, 4, 5)},
        timeouts=True,
    ),
    Mutant("losses are passed over", instead(twopc.driver.recovery, "heal", _restored_as_it_was), timeouts=True),
)
