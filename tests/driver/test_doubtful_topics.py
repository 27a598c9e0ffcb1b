"""Topics that a job had better not read or write are told of."""

from __future__ import annotations

from twopc.driver.doubtful_topics import doubts


def one_cluster() -> bool:
    return True


def test_the_same_topic_as_input_and_output_is_told_of() -> None:
    [said] = doubts(["a", "b"], ["b"], one_cluster)
    assert said.startswith("topic 'b' is input and output of this job")


def test_topics_of_one_name_on_two_clusters_are_two() -> None:
    assert list(doubts(["a"], ["a"], lambda: False)) == []


def test_no_cluster_is_asked_about_topics_of_different_names() -> None:
    assert list(doubts(["a"], ["b"], lambda: 1 / 0 > 0)) == []


def test_topics_that_kafka_keeps_for_itself_are_told_of() -> None:
    said = list(doubts(["__consumer_offsets", "a"], ["__b"], one_cluster))
    assert [line.split(",")[0] for line in said] == ["topic '__b' is written to", "topic '__consumer_offsets' is read"]
