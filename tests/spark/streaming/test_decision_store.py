"""Decisions in a folder and in a bucket: each is created once, and the newest are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.object_server.server import ObjectServer
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.spark.streaming.decision import Decision, StoredDecisions
from twopc.spark.streaming.decision_store import KEPT_BATCHES, DecisionStore


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.broker)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "folder":
        return str(tmp_path / "decisions")
    server: ObjectServer = request.getfixturevalue("object_server")
    for name, value in server.environment(server.port).items():
        monkeypatch.setenv(name, value)
    return server.url(f"decisions/{tmp_path.name}")


@pytest.fixture
def store(place: str) -> DecisionStore:
    made = DecisionStore(place, "lines")
    made.claim_for("q-1")
    return made


def decision(batch: int, revision: int = 1, run: int = 1) -> Decision:
    transactions = (Committable(f"lines-{run}-0-0@{batch}", CheckpointId(batch), SubtaskIndex(0), {"start_ms": 7}),)
    return Decision(batch, revision, AttemptId(run), transactions)


def test_a_decision_is_read_back_as_it_was_stored(store: DecisionStore) -> None:
    stored = store.decide(decision(0))
    assert stored is not None
    assert store.known(0) == StoredDecisions(0, stored)
    assert stored.names == {"lines-1-0-0@0"}


def test_of_two_decisions_about_a_batch_the_first_one_counts(store: DecisionStore) -> None:
    first = store.decide(decision(0))
    assert store.decide(decision(0, run=2)) is None
    assert store.known(0).decision == first


def test_the_same_decision_of_another_driver_is_another_one(place: str, store: DecisionStore) -> None:
    assert store.decide(decision(0)) is not None
    assert DecisionStore(place, "lines").decide(decision(0)) is None


def test_a_second_decision_about_a_batch_goes_before_the_first(store: DecisionStore) -> None:
    store.decide(decision(0))
    again = store.decide(decision(0, revision=2))
    assert store.known(0).decision == again


def test_of_a_batch_that_is_not_decided_only_the_newest_that_is_is_known(store: DecisionStore) -> None:
    assert store.known(0) == StoredDecisions()
    store.decide(decision(0))
    store.decide(decision(1))
    assert store.known(2) == StoredDecisions(1)


def test_decisions_are_forgotten_when_spark_forgets_its_own(store: DecisionStore) -> None:
    for batch in (0, 1, 2, KEPT_BATCHES):
        store.decide(decision(batch))
    store.forget_old(KEPT_BATCHES + 1)
    assert store.known(0).decision is not None, "not every batch looks"
    store.forget_old(KEPT_BATCHES)
    assert [store.known(batch).decision is None for batch in (0, 1, 2)] == [True, False, False]


def test_a_driver_that_slept_until_its_batch_was_forgotten_decides_nothing(store: DecisionStore) -> None:
    for batch in (8, 9, KEPT_BATCHES + 20):
        store.decide(decision(batch))
    store.forget_old(KEPT_BATCHES + 20)
    assert store.decide(decision(8, run=2)) is None
    assert store.known(8) == StoredDecisions(KEPT_BATCHES + 20)


def test_the_place_of_another_query_is_refused(place: str, store: DecisionStore) -> None:
    DecisionStore(place, "lines").claim_for("q-1")
    DecisionStore(place, "other").claim_for("q-2")
    with pytest.raises(ConfigurationError, match="are about the query q-1, and this one is q-2"):
        DecisionStore(place, "lines").claim_for("q-2")


def test_a_damaged_decision_is_refused_by_name(tmp_path: Path) -> None:
    store = DecisionStore(str(tmp_path), "lines")
    store.claim_for("q-1")
    store.decide(decision(3))
    file = tmp_path / "lines" / "batches" / "000000000003-1.json"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes().replace(b'"start_ms":7', b'"start_ms":8'))
    with pytest.raises(CheckpointCorrupted, match=r"000000000003-1\.json was damaged"):
        store.known(3)
