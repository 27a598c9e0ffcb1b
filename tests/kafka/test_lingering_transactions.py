"""Which ids are taken over at recovery and later: without a broker, over what it would list."""

from __future__ import annotations

from typing import cast

from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.transactions.lingering_transactions import (
    FENCED_ATTEMPTS,
    abort_open,
    fence_earlier,
    ongoing_ids,
    traces,
)
from twopc.protocol.attempts import Traces
from twopc.protocol.ids import AttemptId

NOW = AttemptId(20)


class Listing:
    """A broker that remembers these ids, and notes which are initialised."""

    def __init__(self, **states: BrokerState) -> None:
        self.states = {name.replace("_", "-"): state for name, state in states.items()}
        self.initialised: list[str] = []

    def list_transactions(self) -> dict[str, BrokerState]:
        return dict(self.states)

    def init_producer_id(self, transactional_id: str, timeout_ms: int) -> int:
        self.initialised.append(transactional_id)
        return 0


def fenced(listing: Listing) -> list[str]:
    return fence_earlier(cast(ControlClient, listing), "job", 1_000, NOW)


def swept(listing: Listing) -> list[str]:
    return abort_open(cast(ControlClient, listing), "job", 1_000, NOW)


def test_what_is_open_is_aborted_however_old_its_attempt() -> None:
    listing = Listing(job_1_0_0=BrokerState.ONGOING, job_19_7_2=BrokerState.PREPARE_ABORT)
    assert fenced(listing) == ["job-1-0-0", "job-19-7-2"]
    assert listing.initialised == ["job-1-0-0", "job-19-7-2"]


def test_every_id_of_the_last_attempts_that_left_any_is_fenced_and_no_older_one() -> None:
    assert FENCED_ATTEMPTS == 8
    listing = Listing(**{f"job_{attempt}_0_0": BrokerState.COMPLETE_COMMIT for attempt in (1, *range(3, 10), 19)})
    assert fenced(listing) == []
    assert listing.initialised == ["job-19-0-0", *(f"job-{attempt}-0-0" for attempt in range(3, 10))]


def test_ids_of_this_attempt_and_of_later_ones_are_left_alone() -> None:
    listing = Listing(job_20_0_0=BrokerState.ONGOING, job_21_0_0=BrokerState.ONGOING, job_99_0_0=BrokerState.EMPTY)
    assert (fenced(listing), swept(listing), listing.initialised) == ([], [], [])


def test_ids_of_another_prefix_are_left_alone() -> None:
    listing = Listing(job_1_2_0_0=BrokerState.ONGOING, jobs_2_0_0=BrokerState.ONGOING, job_0_0=BrokerState.ONGOING)
    assert (fenced(listing), swept(listing), listing.initialised) == ([], [], [])


def test_later_only_what_is_open_is_touched() -> None:
    listing = Listing(job_3_0_0=BrokerState.ONGOING, job_19_0_0=BrokerState.EMPTY)
    assert swept(listing) == ["job-3-0-0"]
    assert listing.initialised == ["job-3-0-0"]


def test_the_traces_are_the_greatest_attempts_that_ids_of_the_prefix_name() -> None:
    listing = Listing(
        job_3_0_0=BrokerState.ONGOING,
        job_12_1_2=BrokerState.EMPTY,
        job_9_40_0_0=BrokerState.EMPTY,
        job_14_claim=BrokerState.EMPTY,
    )
    assert traces(cast(ControlClient, listing), "job") == Traces(AttemptId(14), AttemptId(12), AttemptId(3))


def test_there_are_no_traces_where_no_id_has_the_prefix() -> None:
    assert traces(cast(ControlClient, Listing(other_3_0_0=BrokerState.EMPTY)), "job") == Traces()


def test_a_number_that_nobody_counts_to_is_not_an_attempt() -> None:
    listing = Listing(job_99999999999999999999_0_0=BrokerState.EMPTY)
    assert traces(cast(ControlClient, listing), "job") == Traces()


def test_what_is_being_ended_is_not_listed_as_ongoing() -> None:
    ending = {
        f"job_1_{number}_0": state for number, state in enumerate(BrokerState) if state.name.startswith("PREPARE")
    }
    listing = Listing(job_2_0_0=BrokerState.ONGOING, job_2_1_0=BrokerState.COMPLETE_COMMIT, **ending)
    assert list(ongoing_ids(cast(ControlClient, listing), "job")) == ["job-2-0-0"]
