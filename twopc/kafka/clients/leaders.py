"""The client of partition leaders: they tell whether a transaction is open there, whatever its coordinator says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.kafka_python import KafkaAdminClient, KafkaTopicPartition, WriteTxnMarkersRequest, errors
from twopc.kafka.topic_partition import TopicPartition


class LeaderClient(ControlClient):
    """A ControlClient that asks leaders too. Any thread may call."""

    def open_in(self, partitions: Iterable[TopicPartition], producer: tuple[int, int]) -> dict[TopicPartition, int]:
        """Return where this producer has a transaction open, by what the partitions' leaders know, not its coordinator.

        With each, the epoch of the transaction coordinator that wrote the producer's last marker there.
        """
        return {
            partition: each.coordinator_epoch
            for partition, found in self.open_producers(partitions).items()
            for each in found
            if (each.producer_id, each.producer_epoch) == producer
        }

    def write_commit_markers(self, open_in: Mapping[TopicPartition, int], producer: tuple[int, int]) -> None:
        """Write the commit marker of this producer's transaction to what `open_in` found, and ask nothing."""
        for partition, coordinator_epoch in open_in.items():
            self._brokers.run(partial(_write_marker, partition, coordinator_epoch, producer))


async def _write_marker(
    partition: TopicPartition, coordinator_epoch: int, producer: tuple[int, int], client: KafkaAdminClient
) -> None:
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    topic = marker.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
    request = WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=producer[0],
                producer_epoch=producer[1],
                transaction_result=True,
                topics=[topic],
                coordinator_epoch=coordinator_epoch,
            )
        ]
    )
    leaders = await client._async_get_leader_for_partitions({KafkaTopicPartition(*partition)})
    answer = await client._manager.send(request, node_id=next(iter(leaders)))
    [written] = [row for result in answer.markers for named in result.topics for row in named.partitions]
    error = errors.for_code(written.error_code)
    if error is not errors.NoError:
        raise error(f"writing a marker to {partition}")
