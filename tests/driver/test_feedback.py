"""A job that reads what it writes is warned of."""

from __future__ import annotations

from twopc.driver.feedback import feedback


def one_cluster() -> bool:
    return True


def test_one_name_as_input_and_output_is_warned_of() -> None:
    [warning] = feedback(["a", "b"], ["b"], one_cluster)
    assert warning.startswith("'b' is input and output of this job")


def test_one_name_on_two_clusters_is_two() -> None:
    assert list(feedback(["a"], ["a"], lambda: False)) == []


def test_no_cluster_is_asked_about_different_names() -> None:
    assert list(feedback(["a"], ["b"], lambda: 1 / 0 > 0)) == []
