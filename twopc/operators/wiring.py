"""A graph as its batches go through it: where the records of each source come first, and where ways meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from twopc.operators.busy_time import BusyTime
from twopc.operators.instance import Instance
from twopc.operators.meeting import Meeting, Order
from twopc.operators.meeting_points import comes_by_key, meeting_points
from twopc.operators.node import Node, sharing_outputs, ways_meet
from twopc.operators.result import Work
from twopc.operators.step import Step
from twopc.operators.stop import Stop, trunk, way_to_meeting
from twopc.port import Port
from twopc.record import Batch


class Crossing:
    """A place where ways meet. Behind a merge all goes on as one; elsewhere each way ends at a stop of its own."""

    def __init__(self, busy: BusyTime) -> None:
        self._busy = busy
        self.meeting = Meeting()
        self.following: tuple[Stop, ...] = ()
        self.stops: list[Stop] = []
        self.keys_apart = True
        """Whether records of different keys may go on in any order: then their places put them back."""
        self._together: Callable[[Sequence[int]], Work] | None = None

    def add(self, stop: Stop, instance: Instance, *, by_key: bool) -> None:
        """Let a way, which is that of several sources, end at this stop of an operator.

        `by_key`: what comes there with one place has one key.
        """
        stop.meeting, stop.way, stop.of_several = self.meeting, len(self.stops), True
        self.stops.append(stop)
        self.keys_apart = self.keys_apart and by_key and stop.step is not None and stop.step.keys_apart
        alone = all(other.id == stop.id for other in self.stops)
        self._together = instance.together if alone and stop.step is not None and stop.step.ports_together else None

    def leave(self, order: Order, below: float) -> Iterator[tuple[Stop, Batch]]:
        """Yield the records with lesser numbers than this, in parts, with the stop at which each goes on."""
        if self._together is None:
            for way, part in self.meeting.leave_apart(order, below, keys_apart=self.keys_apart):
                yield self.stops[way], part
        else:
            batch, ways = self.meeting.leave_with_ways(order, below)
            stop = self.stops[0]
            yield replace(stop, operate=self._busy.of(stop.id, self._together(ways))), batch


class Wiring:
    """What follows what, by operator id. A merge is no place of its own unless ways meet there: what follows it is.

    - `starts`: where the records of each source come first; `places`: the stop of each step.
    - `merges`: those in which ways of one source meet, in the order of the job.
    - `crossings`: where those of several sources do, and the merges; in the order in which they can be left. None where
      the records of several sources can't go in one turn.
    - `shared`: the sinks of each set that has one output, and where their ways meet.
    """

    def __init__(self, nodes: Sequence[Node], instances: Mapping[str, Instance], busy: BusyTime) -> None:
        self._nodes, self._instances, self._busy = nodes, instances, busy
        points = meeting_points(nodes)
        self.crossings = None if points is None else tuple(Crossing(busy) for _ in points)
        self._crossing_of = {
            key: crossing for point, crossing in zip(points or (), self.crossings or (), strict=True) for key in point
        }
        self.places: dict[str, Stop] = {}
        self.merges: list[Crossing] = []
        self.shared: list[tuple[Meeting, Sequence[str]]] = []
        self.starts: dict[str, tuple[Stop, ...]] = {}
        self._connect()

    def cuttable(self, sources: Collection[str]) -> frozenset[Stop]:
        """Return the steps at which a turn of these sources may be cut.

        They are those before the first place where all of it meets, and behind that, if it is a merge, as far as a
        batch of one source is cut.
        """
        ways = [way_to_meeting(self.starts[source]) for source in sources]
        meeting = ways[0][0]
        if meeting is None or any(other is not meeting for other, _ in ways):
            return frozenset()
        crossing = next(each for each in self.crossings or () if each.meeting is meeting)
        return frozenset(trunk(crossing.following)).union(*(steps for _, steps in ways))

    def _connect(self) -> None:
        following: defaultdict[Port, list[Stop]] = defaultdict(list)
        sinks = self._sharing()
        for node in reversed(self._nodes):
            after = tuple(following[Port(node.id)])
            if not node.inputs:
                self.starts[node.id] = after
                continue
            sides = {
                port.output: tuple(at) for port, at in following.items() if port.operator == node.id and port.output
            }
            places = [(sinks[node.id],)] if node.id in sinks else self._stops(node, after, sides)
            if isinstance(node.operation, Step):
                self.places[node.id] = next(stop for stops in places for stop in stops)
            for origin, stops in zip(map(Port.parse, node.inputs), places, strict=True):
                following[origin][:0] = stops

    def _stops(
        self, node: Node, after: tuple[Stop, ...], sides: Mapping[str, tuple[Stop, ...]]
    ) -> Sequence[Sequence[Stop]]:
        """Return where the records of each input of a node come first."""
        step = node.operation
        if not isinstance(step, Step):
            return self._joined(node, after or (Stop(node.id, None, None),))
        works = (self._busy.of(node.id, work) for work in self._instances[node.id].ports)
        stops = [[Stop(node.id, step, next(works), after, sides)] if port.takes_records else [] for port in step.ports]
        if (crossing := self._crossing_of.get(node.id)) is not None:
            for stop in chain.from_iterable(stops):
                crossing.add(stop, self._instances[node.id], by_key=comes_by_key(self._nodes, node.id))
        return stops

    def _joined(self, node: Node, after: tuple[Stop, ...]) -> Sequence[Sequence[Stop]]:
        """Return where the records of each input of a merge come first, or that of a sink."""
        crossing, of_several = self._crossing_of.get(node.id), not ways_meet(self._nodes, node.inputs)
        if len(node.inputs) == 1 or (of_several and crossing is None):
            return [after] * len(node.inputs)
        crossing = crossing or Crossing(self._busy)
        crossing.following = after
        if not of_several:
            # Nodes come here from the last to the first.
            self.merges.insert(0, crossing)
        return [
            (Stop(node.id, None, None, after, meeting=crossing.meeting, way=way, of_several=of_several),)
            for way in range(len(node.inputs))
        ]

    def _sharing(self) -> dict[str, Stop]:
        """Return the places of sinks that write to one output what may come of one source."""
        stops: dict[str, Stop] = {}
        for sinks in sharing_outputs(self._nodes):
            meeting = Meeting()
            self.shared.append((meeting, sinks))
            stops |= {sink: Stop(sink, None, None, meeting=meeting, way=way) for way, sink in enumerate(sinks)}
        return stops
