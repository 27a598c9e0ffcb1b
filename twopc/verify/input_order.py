"""The input of a replay: sources whose records meet by key in the order of event time, others one after the other.

That is the order of a run to which each record was there when its turn came (`twopc.runtime.event_time_order`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing

from twopc.clock import SystemClock
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.reader import KafkaReader
from twopc.kafka.input.topic_reader import BATCH, POLL_SECONDS, Ranges, open_reader, read, until_done
from twopc.kafka.source import KafkaSource
from twopc.operators import Turn
from twopc.runtime.event_time_order import EventTimeOrder, has_a_number_twice, have_own_places
from twopc.verify.paths import Paths


def groups_of(paths: Paths, sources: Mapping[str, KafkaSource]) -> list[tuple[str, ...]]:
    """Return these sources in the groups that are read together, each once."""
    met = [tuple(source for source in group if source in sources) for group in paths.meetings]
    together = {source for group in met for source in group}
    return [*filter(None, met), *((source,) for source in sources if source not in together)]


def _open(cluster: Cluster, ranges: Ranges, source: KafkaSource) -> KafkaReader:
    return open_reader(cluster, ranges, key=source.key, value=source.value, kind=source.reader)


def read_group(
    paths: Paths,
    sources: Mapping[str, KafkaSource],
    clusters: Mapping[str, Cluster],
    ranges: Mapping[str, Ranges],
    *,
    together: bool,
) -> Iterator[Turn]:
    """Yield the records of one group, each partition in its order; raise Unavailable if none come.

    `together` says that records of several sources may go in one turn.
    """
    if not any(source in met for met in paths.meetings for source in sources):
        for name, source in sources.items():
            for batch in read(clusters[name], ranges[name], key=source.key, value=source.value, kind=source.reader):
                yield Turn.of(name, batch)
        return
    with ExitStack() as opened:
        readers = {
            name: opened.enter_context(closing(_open(clusters[name], ranges[name], source)))
            for name, source in sources.items()
        }
        several = {name: sources[name].input_of for name, reader in readers.items() if has_a_number_twice(reader)}
        together = together and have_own_places(sources.values())
        order = EventTimeOrder(readers, paths.event_times, 0.0, SystemClock(), several, together=together)

        def is_done() -> bool:
            return all(reader.finished() and not order.held(name) for name, reader in readers.items())

        def poll() -> Turn | None:
            return order.poll(POLL_SECONDS, BATCH, lambda name: readers[name].finished())

        where = ", ".join(dict.fromkeys(clusters[name].servers for name in sources))
        yield from until_done(poll, is_done, readers.values(), where)
