"""Whether topics are still the same: which brokers are asked, and what their answers mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from twopc.errors import CheckpointDeclined, ConfigurationError, InputGone, Unavailable
from twopc.kafka.clients.control_client import TopicInfo
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.protocol.ids import CheckpointId

FIRST, SECOND = CheckpointId(1), CheckpointId(2)


class Cluster:
    """Brokers that each have metadata of their own; `questions` lists whom questions went to."""

    def __init__(self, metadata: Mapping[int, dict[str, TopicInfo]], at_hand: int = 0) -> None:
        self.metadata = dict(metadata)
        self.at_hand = at_hand
        self.questions: list[int] = []

    def topics(self, names: Iterable[str], node: int | None = None) -> dict[str, TopicInfo]:
        node = self.at_hand if node is None else node
        self.questions.append(node)
        if node not in self.metadata:
            raise Unavailable(f"broker {node} gave no answer")
        return {name: self.metadata[node][name] for name in names if name in self.metadata[node]}


def led_by(*leaders: int, topic_id: str = "a", topic: str = "in") -> dict[str, TopicInfo]:
    return {topic: TopicInfo(topic_id, len(leaders), leaders)}


def reading(cluster: Cluster, *partitions: int) -> TopicIdentity:
    identity = TopicIdentity(cluster)
    identity.note_input("in", "a", partitions or (0,))
    return identity


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.kafka.topics.topic_identity.ANSWER_SECONDS", 0.01)
    monkeypatch.setattr("twopc.kafka.topics.topic_identity.GONE_SECONDS", 0.01)


def test_who_leads_the_partitions_that_are_read_is_asked_once_a_checkpoint_and_nobody_else() -> None:
    same = led_by(1, 2, 1)
    cluster = Cluster({0: same, 1: same, 2: same})
    identity = reading(cluster, 0, 2)
    identity.check(FIRST)
    cluster.questions.clear()
    identity.check(SECOND)
    assert cluster.questions == [1]


def test_a_new_topic_is_seen_though_the_broker_at_hand_knows_only_the_old_one() -> None:
    stale = led_by(1)
    cluster = Cluster({0: stale, 1: led_by(1, topic_id="b")})
    with pytest.raises(ConfigurationError, match=r"input topic 'in' .* its id was a, and is b now.*--drop-inputs in:"):
        reading(cluster).check(FIRST)


def test_a_new_topic_is_seen_though_the_old_leader_knows_only_that_it_no_longer_leads() -> None:
    cluster = Cluster({0: led_by(1), 1: led_by(1)})
    identity = reading(cluster)
    identity.check(FIRST)
    cluster.metadata = {0: led_by(2), 1: led_by(2), 2: led_by(2, topic_id="b")}
    with pytest.raises(ConfigurationError, match="and is b now"):
        identity.check(SECOND)


def test_a_leader_that_has_gone_is_no_longer_asked_once_another_leads() -> None:
    cluster = Cluster({0: led_by(1), 1: led_by(1)})
    identity = reading(cluster)
    identity.check(FIRST)
    cluster.metadata = {0: led_by(2), 2: led_by(2)}
    identity.check(SECOND)
    assert cluster.questions[-1] == 2


def test_brokers_that_do_not_answer_cost_the_checkpoint_and_nothing_more() -> None:
    with pytest.raises(CheckpointDeclined, match="broker 0 gave no answer"):
        reading(Cluster({})).check(FIRST)


def test_a_topic_is_deleted_when_it_stays_missing() -> None:
    with pytest.raises(InputGone, match=r"input topic 'in' was deleted \(its id was a\)"):
        reading(Cluster({0: {}})).check(FIRST)


def test_a_topic_that_one_broker_does_not_know_yet_is_not_deleted() -> None:
    class Starting(Cluster):
        def topics(self, names: Iterable[str], node: int | None = None) -> dict[str, TopicInfo]:
            known = super().topics(names, node)
            return known if len(self.questions) > 1 else {}

    reading(Starting({0: led_by(0)})).check(FIRST)


def test_one_question_is_about_input_and_output() -> None:
    same = led_by(0) | led_by(0, topic_id="o", topic="out")
    cluster = Cluster({0: same})
    identity = reading(cluster)
    identity.note_output("out", "o")
    identity.check(FIRST)
    cluster.questions.clear()
    identity.check(SECOND)
    identity.check_once(SECOND)
    assert cluster.questions == [0]


def test_a_recreated_output_topic_is_named_with_both_ids() -> None:
    identity = TopicIdentity(Cluster({0: led_by(0, topic_id="p", topic="out")}))
    identity.note_output("out", "o")
    with pytest.raises(ConfigurationError, match=r"output topic 'out' .* its id was o, and is p now"):
        identity.check_once(FIRST)


def test_whoever_waits_in_vain_learns_of_a_deleted_topic_and_nothing_of_brokers_that_are_away() -> None:
    identity = reading(cluster := Cluster({}))
    identity.doubt()
    cluster.metadata[0] = {}
    identity.doubt()
    assert cluster.questions == [0], "it asks only now and then"
    with pytest.raises(InputGone, match="was deleted"):
        identity.check_if_answered()
