"""Where batches of the source `twopc-kafka` begin and end, and what ends a query by its name; at brokers of a table."""

from __future__ import annotations

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from tests.spark.streaming.source_cluster import FakeCluster, FakedReader, Topic, by_partition
from twopc.errors import ConfigurationError
from twopc.spark.streaming import source_losses


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_losses, "GONE_SECONDS", 0.01)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster({"orders": Topic("id-1", [(5, 100), (0, 40)])})


def test_the_first_batch_only_notes_where_the_query_begins(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster)
    begun = reader.initialOffset()
    first = reader.next(begun)
    assert by_partition(first) == {"orders[0]": 5, "orders[1]": 0}
    assert reader.ranges(begun, first) == {}
    second = reader.next(first)
    assert reader.ranges(first, second) == {"orders[0]": (5, 100), "orders[1]": (0, 40)}


def test_a_first_batch_that_is_run_again_begins_where_it_began_though_the_topic_has_moved(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, startingOffsets="latest")
    first = reader.next(reader.initialOffset())
    cluster.known["orders"].partitions = [(5, 200), (0, 90)]
    again = FakedReader(cluster, startingOffsets="latest")
    assert again.ranges(again.initialOffset(), first) == {}
    assert again.ranges(first, again.next(first)) == {"orders[0]": (100, 200), "orders[1]": (40, 90)}


@pytest.mark.parametrize(
    ("said", "begun"),
    [
        ({"startingOffsets": "earliest"}, {"orders[0]": 5, "orders[1]": 0}),
        ({"startingOffsets": "latest"}, {"orders[0]": 100, "orders[1]": 40}),
        ({"startingTimestamp": "50"}, {"orders[0]": 50, "orders[1]": 40}),
        ({"startingOffsets": '{"orders": {"1": 7}}'}, {"orders[0]": 5, "orders[1]": 7}),
    ],
)
def test_a_query_begins_where_it_is_told(cluster: FakeCluster, said: dict[str, str], begun: dict[str, int]) -> None:
    reader = FakedReader(cluster, **said)
    assert by_partition(reader.next(reader.initialOffset())) == begun


@pytest.mark.parametrize(
    ("offsets", "refusal"),
    [
        ('{"orders": {"0": 4}}', r"orders\[0\] can't be read from offset 4, where startingOffsets says: it has 5 to"),
        ('{"orders": {"0": 101}}', r"can't be read from offset 101"),
        ('{"orders": {"2": 1}}', r"startingOffsets names orders\[2\], which the query does not read"),
    ],
)
def test_a_start_that_is_not_there_is_refused(cluster: FakeCluster, offsets: str, refusal: str) -> None:
    reader = FakedReader(cluster, startingOffsets=offsets)
    with pytest.raises(ConfigurationError, match=refusal):
        reader.next(reader.initialOffset())


def test_a_query_ends_where_nothing_is_new(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster)
    end = reader.next(reader.next(reader.initialOffset()))
    assert reader.next(end) == end
    assert reader.ranges(end, end) == {}


def test_a_batch_takes_no_more_than_it_may(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, maxOffsetsPerTrigger="27")
    assert reader.getDefaultReadLimit() == ReadMaxRows(27)
    first = reader.next(reader.initialOffset())
    second = reader.next(first)
    assert reader.ranges(first, second) == {"orders[0]": (5, 24), "orders[1]": (0, 8)}


def test_a_batch_takes_everything_where_spark_wants_everything(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, maxOffsetsPerTrigger="27", minOffsetsPerTrigger="1000")
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert by_partition(reader.latestOffset(first, ReadAllAvailable())) == {"orders[0]": 100, "orders[1]": 40}


def test_a_batch_waits_for_as_much_as_it_should_have_until_that_takes_too_long(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("twopc.spark.streaming.source_reader.time.monotonic", lambda: now[0])
    reader = FakedReader(cluster, minOffsetsPerTrigger="200", maxTriggerDelay="10s")
    assert reader.getDefaultReadLimit() == ReadMinRows(200)
    first = reader.next(reader.initialOffset())
    assert reader.next(first) == first
    now[0] += 9
    assert reader.next(first) == first
    now[0] += 2
    assert by_partition(reader.next(first)) == {"orders[0]": 100, "orders[1]": 40}


def test_a_query_that_is_to_end_does_so_at_the_ends_of_its_start(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, minOffsetsPerTrigger="1000")
    reader.prepareForTriggerAvailableNow()
    cluster.known["orders"].partitions = [(5, 200), (0, 90), (0, 7)]
    first = reader.next(reader.initialOffset())
    end = reader.next(first)
    assert by_partition(end) == {"orders[0]": 100, "orders[1]": 40, "orders[2]": 0}
    assert reader.next(end) == end


def test_a_query_that_begins_behind_the_ends_of_its_start_ends_at_once(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, startingOffsets="latest")
    reader.prepareForTriggerAvailableNow()
    cluster.known["orders"].partitions = [(5, 200), (0, 90)]
    first = reader.next(reader.initialOffset())
    assert by_partition(first) == {"orders[0]": 200, "orders[1]": 90}
    assert reader.next(first) == first


def test_a_new_partition_is_read_from_its_first_record_wherever_the_query_began(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, startingOffsets="latest")
    begun = reader.next(reader.initialOffset())
    cluster.known["orders"].partitions.append((3, 9))
    noted = reader.next(begun)
    assert reader.ranges(begun, noted) == {}
    assert reader.ranges(noted, reader.next(noted)) == {"orders[2]": (3, 9)}


def test_a_new_topic_that_matches_is_read_from_its_first_record(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, subscribePattern="orders.*", startingOffsets="latest")
    begun = reader.next(reader.initialOffset())
    cluster.known["orders-2"] = Topic("id-2", [(0, 9)])
    cluster.known["other"] = Topic("id-3", [(0, 9)])
    noted = reader.next(begun)
    assert reader.ranges(noted, reader.next(noted)) == {"orders-2[0]": (0, 9)}


def test_a_topic_that_is_named_since_begins_where_the_options_say(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster)
    begun = reader.next(reader.initialOffset())
    cluster.known["more"] = Topic("id-2", [(0, 9)])
    other = FakedReader(cluster, subscribe="orders,more", startingOffsets="latest")
    assert by_partition(other.next(begun))["more[0]"] == 9


def test_the_ends_are_told_beside_the_end_of_a_batch(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, maxOffsetsPerTrigger="10")
    assert reader.reportLatestOffset() is None
    reader.next(reader.initialOffset())
    ends = reader.reportLatestOffset()
    assert ends is not None
    assert by_partition(ends) == {"orders[0]": 100, "orders[1]": 40}


def test_a_topic_that_is_not_there_is_named() -> None:
    reader = FakedReader(FakeCluster())
    with pytest.raises(ConfigurationError, match="input topic 'orders' isn't there"):
        reader.next(reader.initialOffset())


@pytest.mark.parametrize(
    ("now", "said", "instead"),
    [
        (
            Topic("id-1", [(120, 150), (0, 40)]),
            r"orders\[0\]@100 \(deleted by retention; 120 to 150 are there\)",
            {"orders[0]": (120, 150)},
        ),
        (Topic("id-1", [(5, 90), (0, 40)]), r"orders\[0\]@100 \(beyond the end; 5 to 90 are there\)", {}),
        (Topic("id-1", [(5, 100)]), r"orders\[1\]@40 \(topic or partition is gone\)", {}),
        (
            Topic("id-2", [(0, 7), (0, 0)]),
            r"orders\[0\]@100 \(topic was recreated; 0 to 7 are there\), orders\[1\]@40",
            {"orders[0]": (0, 7)},
        ),
    ],
)
def test_a_position_that_means_nothing_any_more_ends_the_query_until_it_is_given_up(
    cluster: FakeCluster, now: Topic, said: str, instead: dict[str, tuple[int, int]]
) -> None:
    reader = FakedReader(cluster)
    end = reader.next(reader.next(reader.initialOffset()))
    cluster.known["orders"] = now
    with pytest.raises(ConfigurationError, match=said) as caught:
        reader.next(end)
    accepted = str(caught.value).split("option('acceptLoss', '")[1].removesuffix("')")
    giving_up = FakedReader(cluster, acceptLoss=accepted)
    noted = giving_up.next(end)
    assert giving_up.ranges(end, noted) | giving_up.ranges(noted, giving_up.next(noted)) == instead


def test_giving_up_one_loss_gives_up_no_other(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster, acceptLoss="orders[0]@99,orders[1]@40")
    end = reader.next(reader.next(reader.initialOffset()))
    cluster.known["orders"].partitions[0] = (120, 150)
    with pytest.raises(ConfigurationError, match=r"acceptLoss', 'orders\[0\]@100'"):
        reader.next(end)


def test_a_batch_that_is_run_again_is_refused_where_its_records_are_gone(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster)
    first = reader.next(reader.initialOffset())
    end = reader.next(first)
    cluster.known["orders"].partitions[0] = (30, 100)
    with pytest.raises(ConfigurationError, match=r"orders\[0\]@5 \(deleted by retention"):
        reader.ranges(first, end)
    giving_up = FakedReader(cluster, acceptLoss="orders[0]@5")
    assert giving_up.ranges(first, end) == {"orders[0]": (30, 100), "orders[1]": (0, 40)}


def test_a_batch_whose_end_the_brokers_have_lost_is_refused(cluster: FakeCluster) -> None:
    reader = FakedReader(cluster)
    first = reader.next(reader.initialOffset())
    end = reader.next(first)
    cluster.known["orders"].partitions[0] = (5, 80)
    with pytest.raises(ConfigurationError, match=r"orders\[0\]@100 \(beyond the end"):
        reader.ranges(first, end)


def test_a_topic_that_the_options_name_no_more_is_refused_until_it_is_given_up(cluster: FakeCluster) -> None:
    cluster.known["more"] = Topic("id-2", [(0, 9)])
    both = FakedReader(cluster, subscribe="orders,more")
    end = both.next(both.next(both.initialOffset()))
    with pytest.raises(ConfigurationError, match=r"stands at more\[0\]@9, in topics that its options don't name"):
        FakedReader(cluster).next(end)
    assert "more[0]" not in by_partition(FakedReader(cluster, acceptLoss="more[0]@9").next(end))


def test_a_broker_that_knows_a_topic_a_little_later_costs_no_query(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_losses, "GONE_SECONDS", 30)
    reader = FakedReader(cluster)
    end = reader.next(reader.next(reader.initialOffset()))
    whole, asked = FakeCluster.topics, []

    def topics(self: FakeCluster, names: object, node: int | None = None) -> object:
        asked.append(names)
        return {} if len(asked) == 1 else whole(self, names, node)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeCluster, "topics", topics)
    assert reader.next(end) == end
