"""Breaks of tables, joins, the order in which records meet, broadcast tables, and coroutine functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import tests.simulation.subtask
import twopc.operators.meeting
import twopc.runtime.event_time_order
import twopc.source_groups
from tests.simulation.bad_records import DEAD
from tests.simulation.joins import AS_OF, OPEN, STREAMS, TABLE, TABLES, TOLD, WAITS
from tests.simulation.mutants import Mutant, instead
from twopc.operators import Dataflow
from twopc.operators.as_of_join import AsOfJoin
from twopc.operators.async_map import AsyncMap, _Calls, _Failed
from twopc.operators.bound_state import decoded
from twopc.operators.broadcast import BroadcastTable
from twopc.operators.join_side import WaitingRecords
from twopc.operators.meeting import Meeting
from twopc.operators.stream_join import StreamJoin
from twopc.operators.table import TableOperator
from twopc.operators.table_join import TableJoinProcessor
from twopc.operators.versions import BoundVersions, _order
from twopc.operators.write_back_cache import WriteBackCache
from twopc.record import Batch
from twopc.runtime.broadcasts import Broadcasts
from twopc.runtime.event_time_order import EventTimeOrder
from twopc.runtime.inputs import Inputs
from twopc.runtime.lanes import Lane, _Chunk

_put = WriteBackCache.put
_open_join, _meet, _put_alone = StreamJoin.__init__, StreamJoin._meet, StreamJoin._put_alone
_leave = WaitingRecords.leave
_join_tables, _join_as_of = TableJoinProcessor.process, AsOfJoin.process
_as_of = BoundVersions.as_of
_keep = BroadcastTable.process
_orders_of = twopc.runtime.event_time_order.orders_of
_source_groups = twopc.source_groups.source_groups
_map_async = AsyncMap.process
_leave_apart = Meeting.leave_apart
_END = object()


def _put_no_tombstones(cache: Any, partition: int, keys: Any, values: Any) -> None:
    kept = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
    _put(cache, partition, [key for key, _ in kept], [value for _, value in kept])


def _put_new_keys(cache: Any, partition: int, keys: Any, values: Any) -> None:
    held, _ = cache.of(partition)
    kept = [(key, value) for key, value in zip(keys, values, strict=True) if value is None or held.get(key) is None]
    _put(cache, partition, [key for key, _ in kept], [value for _, value in kept])


def _waiting(grace_ms: int) -> Callable[..., Any]:
    """Wait so much longer, or shorter, than two records may be apart."""

    def opened(join: Any, step: Any, context: Any) -> None:
        _open_join(join, replace(step, grace_ms=grace_ms), context)

    return opened


def _alone_at_once(join: Any, partition: Any, batch: Any, index: int, came: Any) -> None:
    """Put out who has met nobody yet, and still let them meet who comes later."""
    before, which = len(join._outputs.values), join._which[index]
    _meet(join, partition, batch, index, came)
    if len(join._outputs.values) == before and join._goes_alone[which]:
        _, at, value = came
        alone = [join._joined(value, None, which)]
        join._outputs.put(batch.rows[index], batch.keys[index], alone, [at], batch.headers[index])


def _none_has_met(waiting: Any, form: bytes, until: int) -> Any:
    gone, following = _leave(waiting, form, until)
    return [(since, last, False, held) for since, last, _, held in gone], following


def _left_alone(join: Any, gone: Any, due: Any, row: Any, which: int) -> None:
    if which == 0:
        _put_alone(join, gone, due, row, which)


def _no_tombstones(join: Any, record: Any, context: Any) -> Any:
    made = _join_tables(join, record, context)
    return made if made is not None and made.value is not None else None


def _tombstones_always(join: Any, record: Any, context: Any) -> Any:
    return _join_tables(join, record, context) or record.replace(value=None)


def _waits_for_no_version(join: Any, record: Any, context: Any) -> Any:
    said, join.grace_ms = join.grace_ms, 0
    try:
        return _join_as_of(join, record, context)
    finally:
        join.grace_ms = said


def _what_was_before(versions: Any, at: int) -> Any:
    """The last version of that time that is no deletion."""
    found = [decoded("", versions.serde, data).value for _, data in sorted(versions._until(at), key=_order)]
    return next((value for value in reversed(found) if value is not None), None)


def _tell_all(flow: Any) -> None:
    flow._outputs += [output for _, output in flow._refused]
    flow._refused = []


def _hold_as_they_are(lane: Any, held: Any, indices: Any, times: Any) -> None:
    lane._chunks.append(_Chunk(held, indices, list(times)))
    lane._last, lane.size = times[-1], lane.size + len(times)


def _unwaited(definition: Any, readers: Any, max_idle_seconds: float, clock: Any, *, together: bool) -> Any:
    return _orders_of(definition, readers, 0.0, clock, together=together)


def _in_any_order(meeting: Any, order: Any, below: float, *, keys_apart: bool = False) -> Any:
    return _leave_apart(meeting, {}, below, keys_apart=keys_apart)


def _one_way_after_the_other(every: Any, arrived: Any) -> Any:
    for way in arrived:
        yield way, [each for each in every if each[1] == way]


def _read_some(broadcasts: Any, operator: str, source: Any, context: Any, reading_ends: Any) -> Any:
    with source.open_planner(context) as planner:
        splits = planner.plan({}, bounded=True)
    with closing(source.open_reader(context, splits)) as reader:
        broadcasts._take(operator, reader.poll(0.0, 1))
    return [replace(split, start=split.stop, stop=None) for split in splits]


def _read_and_look_again(broadcasts: Any, operator: str, source: Any, context: Any, reading_ends: Any) -> Any:
    """Follow from the end that is there when all has been read."""
    with source.open_planner(context) as planner:
        splits = planner.plan({}, bounded=True)
        with closing(source.open_reader(context, splits)) as reader:
            while not reader.finished():
                broadcasts._take(operator, reader.poll(0.0, 1))
        now = planner.plan({}, bounded=True)
    return [replace(split, start=split.stop, stop=None) for split in now]


def _keep_no_tombstones(table: Any, batch: Any, over: Any) -> Any:
    before = dict(table._values)
    result = _keep(table, batch, over)
    table._values = before | table._values
    return result


async def _as_they_end(calls: Any) -> None:
    while not calls._failed and (element := next(calls._rest, _END)) is not _END:
        try:
            result = await calls._call(element)
        except BaseException as error:  # noqa: BLE001 - as it is there
            result, calls._failed = _Failed(error), True
        calls.results.append(result)


def _one_in_flight(async_map: Any, batch: Any, over: Any) -> Any:
    """Let the last result of a batch come with the next one."""
    result = _map_async(async_map, batch, over)
    before, output = getattr(async_map, "_late", None), result.batch
    last = len(output) - 1 if result.cause is None and result.taken == len(batch) else len(output)
    async_map._late = output.behind(last) if last < len(output) else None
    parts = [each for each in (before, output.first(last)) if each is not None and len(each)]
    return result._replace(batch=Batch.joined(parts) if parts else output.first(0))


async def _once(async_map: Any, function: Callable[[], Any]) -> Any:
    return await async_map._in_time(function)


def _forget_ahead(async_map: Any, batch: Any, over: Any) -> Any:
    result = _map_async(async_map, batch, over)
    async_map._ahead = []
    return result


def _two_sources_last_first(definition: Any) -> Any:
    return tuple(met[::-1] for met in _source_groups(definition))


JOINED = {"sinks": ("out", DEAD), "sizes": (12, 10), "other_sizes": (11, 12), "input_grows_ms": 0}
RESTARTS = JOINED | {"kill_every_ms": 500, "fault_phase_ms": 3_000}
LOOKED_UP = {"joins": (TABLE, "left", TOLD)}
PAIRS = {"joins": (STREAMS, "outer", TOLD)}
ROWS = {"joins": (TABLES, "inner", TOLD)}
PRICES = {"joins": (AS_OF, "left", TOLD)}

MUTANTS_OF_JOINS = (
    Mutant(
        "a table is in no checkpoint",
        instead(TableOperator, "write_back", lambda table: None),
        RESTARTS | LOOKED_UP,
        500,
    ),
    Mutant("a tombstone deletes nothing", instead(WriteBackCache, "put", _put_no_tombstones), JOINED | LOOKED_UP, 100),
    Mutant("the first value of a key stays", instead(WriteBackCache, "put", _put_new_keys), JOINED | LOOKED_UP, 100),
    Mutant(
        "a tombstone deletes nothing, whatever the order",
        instead(WriteBackCache, "put", _put_no_tombstones),
        JOINED | {"joins": (TABLE, "inner", OPEN)},
        500,
    ),
    Mutant("both sides wait too short", instead(StreamJoin, "__init__", _waiting(-12)), JOINED | PAIRS, 100),
    Mutant(
        "both sides wait too short, whatever the order",
        instead(StreamJoin, "__init__", _waiting(-12)),
        JOINED | {"joins": (STREAMS, "inner", OPEN)},
        500,
    ),
    Mutant("the grace of a join is forgotten", instead(StreamJoin, "__init__", _waiting(0)), JOINED | PAIRS, 100),
    Mutant(
        "who meets nobody at once goes out alone", instead(StreamJoin, "_meet", _alone_at_once), JOINED | PAIRS, 100
    ),
    Mutant(
        "who has met somebody goes out alone too",
        instead(WaitingRecords, "leave", _none_has_met),
        JOINED | PAIRS,
        100,
    ),
    Mutant(
        "of an outer join only one side goes out alone",
        instead(StreamJoin, "_put_alone", _left_alone),
        JOINED | PAIRS,
        100,
    ),
    Mutant(
        "a join of tables deletes nothing", instead(TableJoinProcessor, "process", _no_tombstones), JOINED | ROWS, 100
    ),
    Mutant(
        "a join of tables deletes what it never told",
        instead(TableJoinProcessor, "process", _tombstones_always),
        JOINED | ROWS,
        100,
    ),
    Mutant(
        "an outer join of tables wants both sides",
        instead(TableJoinProcessor, "_is_there", lambda join, left, right: left is not None and right is not None),
        JOINED | {"joins": (TABLES, "outer", OPEN)},
        100,
    ),
    Mutant("a record waits for no version", instead(AsOfJoin, "process", _waits_for_no_version), JOINED | PRICES, 100),
    Mutant(
        "a record finds the newest version",
        instead(BoundVersions, "as_of", lambda versions, at: _as_of(versions, 2**62)),
        JOINED | PRICES,
        100,
    ),
    Mutant(
        "a deleted row still has a version", instead(BoundVersions, "as_of", _what_was_before), JOINED | PRICES, 100
    ),
    Mutant(
        "what goes wrong in a turn is told though its record is read again",
        instead(Dataflow, "_tell_refused", _tell_all),
        RESTARTS | PAIRS,
        2_000,
    ),
    Mutant(
        "records meet in the order in which they are read",
        instead(tests.simulation.subtask, "orders_of", lambda *ignored, together: []),
        JOINED | LOOKED_UP,
        100,
    ),
    Mutant(
        "of one time the stream's record goes before the table's",
        instead(twopc.runtime.event_time_order, "source_groups", _two_sources_last_first),
        JOINED | LOOKED_UP,
        100,
    ),
    Mutant(
        "who has more to read is not waited for",
        instead(EventTimeOrder, "_is_idle", lambda order, lane: True),
        JOINED | LOOKED_UP,
        100,
    ),
    Mutant(
        "nobody is waited for longer",
        instead(tests.simulation.subtask, "orders_of", _unwaited),
        JOINED | {"joins": (TABLE, "inner", WAITS)},
        100,
    ),
    Mutant("a time that jumps back is the earlier", instead(Lane, "hold", _hold_as_they_are), JOINED | LOOKED_UP, 300),
    Mutant(
        "a turn of several has records that others to come are before",
        instead(Lane, "bound", lambda lane, is_over: math.inf),
        JOINED | LOOKED_UP,
        100,
    ),
    Mutant(
        "records of one turn meet in the order of their sources",
        instead(Meeting, "leave_apart", _in_any_order),
        JOINED | LOOKED_UP,
        300,
    ),
    Mutant(
        "all of a turn's table is there before its stream, whatever the key",
        instead(twopc.operators.meeting, "_by_key", _one_way_after_the_other),
        JOINED | LOOKED_UP,
        300,
    ),
    Mutant(
        "what waits in a turn of several that was cut counts as gone",
        instead(Dataflow, "_least", lambda flow, order: math.inf),
        RESTARTS | LOOKED_UP,
        500,
    ),
    Mutant(
        "what is held is not waited for at the end",
        instead(Inputs, "_held", lambda inputs, source: 0),
        JOINED | LOOKED_UP,
        100,
    ),
    Mutant(
        "a broadcast table is read in part before the first record",
        instead(Broadcasts, "_read", _read_some),
        JOINED | LOOKED_UP,
        100,
    ),
    Mutant(
        "what comes while a broadcast table is read is passed over",
        instead(Broadcasts, "_read", _read_and_look_again),
        RESTARTS | LOOKED_UP,
        1_000,
    ),
    Mutant(
        "a broadcast table is not followed",
        instead(Broadcasts, "follow", lambda broadcasts: None),
        JOINED | LOOKED_UP | {"fault_phase_ms": 3_000},
        500,
    ),
    Mutant(
        "a tombstone of a broadcast table deletes nothing",
        instead(BroadcastTable, "process", _keep_no_tombstones),
        JOINED | LOOKED_UP,
        100,
    ),
    Mutant(
        "results come in the order in which calls end", instead(_Calls, "_work", _as_they_end), JOINED | LOOKED_UP, 100
    ),
    Mutant(
        "a batch ends while a call is in flight",
        instead(AsyncMap, "process", _one_in_flight),
        RESTARTS | LOOKED_UP,
        500,
    ),
    Mutant("a call that failed is not made again", instead(AsyncMap, "_retried", _once), JOINED | LOOKED_UP, 100),
    Mutant("a call that has ended is made again", instead(AsyncMap, "process", _forget_ahead), JOINED | LOOKED_UP, 500),
)
