"""The verdict on a run, seen from outside: by the output, the broker, the ledger, the last snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tests.simulation.bad_records import ALARMS
from tests.simulation.disk import positions_of
from tests.simulation.driver import HEALED
from tests.simulation.job import FILES, KAFKA_TOPICS, OWN, PREFIXES, expected_output, expected_states
from tests.simulation.joins import BOTH, PAIRS, VERSIONS, joined_of
from tests.simulation.joins_judge import held_of, judge_joined
from tests.simulation.run import Simulation
from tests.simulation.snapshots import STATE_FILE
from tests.simulation.timed_verdict import judge_no_more_told, judge_timed_output, judge_timed_states
from tests.simulation.world import EPOCH_MS
from twopc.config import NO_TIMEOUT_MS
from twopc.kafka.transactions.naming import parse_transactional_id
from twopc.protocol.layout import checkpoint_of_folder, is_manifest, manifest_of, metadata_path
from twopc.protocol.manifest import Manifest
from twopc.state.backend import Family
from twopc.state.changes import Changes
from twopc.state.layout import ROWS, StateName
from twopc.state.whole_states import stored_by_entry, whole_states

FALSE_ALARM = "said to be lost while it is committed"
BEHIND_NOTHING = "a loss was not healed because of a transaction that held no output"
COMMITTED_BEHIND = re.compile(r"what subtask (\d+) wrote for checkpoint (\d+) is committed, though")
Stored = tuple[StateName, int, bytes, bytes]
"""Of which state something is, under which number, and its key and value."""

COMMITTABLE = r"\b[a-z]+-\d+-\d+-\d+@\d+"


def judge_run(run: Simulation) -> None:
    """Enter every broken invariant into the world's violations."""
    world = run.world
    for what, numbers in (("triggered", run.triggered), ("completed", run.completed)):
        # Not always in their order: a coordinator that was paused after storing one may be late to say so.
        if len(set(numbers)) != len(numbers):
            world.violated(f"a checkpoint id was {what} twice", numbers)
    run.client_actions.judge()
    if world.coverage.get(HEALED) and world.faults.transaction_timeout_ms == NO_TIMEOUT_MS:
        # Healing must not hide that something lost it.
        world.violated("output was lost, and written again, although no transaction expires")
    if run.lost:
        _judge_loss(run)
        return
    if run.refused:
        _judge_no_more_than_expected(run)
        return
    if not run.broker.recreated:
        _judge_output(run)
    _judge_global_commits(run)
    left = [name for name in run.broker.open_transactions() if not _opened_by_a_zombie_since(run, name)]
    if left:
        world.violated("left open", ", ".join(left))
    if run.driver.done and not world.violations and not run.folder.rotten:
        _judge_last_checkpoint(run)
        _judge_files(run)


def _judge_global_commits(run: Simulation) -> None:
    if run.table is not None and run.driver.done:
        run.table.judge()


def _judge_output(run: Simulation) -> None:
    if run.world.faults.waits_for:
        judge_timed_output(run)
        return
    if (joined := joined_of(run.world.faults)) is not None:
        judge_joined(run, joined, whole=True)
        return
    for sink in run.world.faults.sinks:
        for lane, size in enumerate(run.broker.lanes.values()):
            expected, visible = _expected(run, sink, lane, _size_for(run, sink, lane, size)), _visible(run, sink, lane)
            if visible != expected and not (run.went_back and set(visible) == set(expected)):
                difference = f"{sink}, lane {lane}: {_difference(expected, visible)}"
                run.world.violated("output is not exactly once", difference)


def _opened_by_a_zombie_since(run: Simulation, name: str) -> bool:
    """Whether a process of an earlier attempt opened it when the job had finished: the next start would abort it."""
    parsed = next(filter(None, (parse_transactional_id(prefix, name) for prefix in PREFIXES.values())), None)
    assert parsed is not None, f"{name} is not an id of the job"
    return parsed.attempt < run.newest_attempt and run.broker.ids[name].start_ms > EPOCH_MS + run.driver.finished_ms


def _judge_loss(run: Simulation) -> None:
    """A loss is allowed only where something expires or the topic was deleted, and only if it is true.

    Of an id that the broker has forgotten, and whose witness a later transaction has replaced, nobody can tell.
    """
    world = run.world
    said = {name for name in re.findall(COMMITTABLE, run.lost) if name.partition("@")[0] not in run.broker.forgotten}
    alarms = sorted(said & run.committed_names)
    if alarms:
        world.violated(FALSE_ALARM, f"{', '.join(alarms)}: {run.lost}")
    elif run.world.faults.transaction_timeout_ms == NO_TIMEOUT_MS and not run.broker.recreated:
        world.violated("output was lost although no transaction expires", run.lost)
    if (behind := COMMITTED_BEHIND.search(run.lost)) and not _held_output(run, int(behind[1]), int(behind[2])):
        world.violated(BEHIND_NOTHING, run.lost)
    _judge_no_more_than_expected(run)


def _held_output(run: Simulation, subtask: int, checkpoint: int) -> bool:
    """Whether what a subtask pre-committed for a checkpoint wrote anywhere but to its group's positions."""
    snapshots = orjson.loads(run.folder.get(metadata_path(run.folder.newest)))["body"]["snapshots"]
    parts = [part for each in snapshots if each["subtask"] == subtask for part in each["parts"].values()]
    written = [item for part in parts for item in part.get("committables", ()) if item["checkpoint_id"] == checkpoint]
    return any(item["payload"].get("topic_ids", True) for item in written)


def _judge_no_more_than_expected(run: Simulation) -> None:
    world = run.world
    if world.faults.waits_for:
        judge_no_more_told(run)
        return
    if (joined := joined_of(world.faults)) is not None:
        judge_joined(run, joined, whole=False)
        return
    for sink in world.faults.sinks:
        for lane, size in enumerate(run.broker.lanes.values()):
            visible = _visible(run, sink, lane)
            is_twice = len(set(visible)) != len(visible) and not run.went_back
            if is_twice or not set(visible) <= set(_expected(run, sink, lane, size)):
                world.violated("output holds more than the input made", f"{sink}, lane {lane}: {visible}")


def _size_for(run: Simulation, sink: str, lane: int, size: int) -> int:
    """How many records of a lane a sink got: all, unless it was taken out."""
    if sink != FILES or run.removed_at is None:
        return size
    return run.removed_at.get(str(list(run.broker.lanes)[lane]), 0)


def _expected(run: Simulation, sink: str, lane: int, size: int) -> Sequence[str]:
    return expected_output(run.world.faults, sink, lane, size)


def _visible(run: Simulation, sink: str, lane: int) -> tuple[str, ...]:
    """What a sink's readers see of a lane."""
    topic = KAFKA_TOPICS.get(sink)
    return tuple(run.files.read(lane) if topic is None else run.broker.read_committed(topic, lane))


def _judge_files(run: Simulation) -> None:
    """Whatever a checkpoint that is kept names is there: files are shared by checkpoints, of which some are deleted."""
    names = frozenset(run.folder.names())
    for name in sorted(filter(is_manifest, names)):
        number = checkpoint_of_folder(name.partition("/")[0])
        assert number is not None
        if metadata_path(number) in names:
            for file in Manifest.decode(run.folder.get(name), name).files:
                if file.stored not in names:
                    run.world.violated("a file of a kept checkpoint is gone", f"{file.stored}, which {name} names")


def _judge_last_checkpoint(run: Simulation) -> None:
    number = run.folder.newest
    path = metadata_path(number)
    own = KAFKA_TOPICS[OWN]
    positions = {split: at for split, at in positions_of(run.folder.get(path)).items() if not split.startswith(own)}
    sizes = {str(partition): size for partition, size in run.broker.lanes.items()}
    if positions != sizes:
        run.world.violated("the last checkpoint is not at the end", f"at {positions}, the input ends at {sizes}")
    try:
        stored = list(_stored(run, path))
    except FileNotFoundError as error:
        run.world.violated("the last checkpoint's state is gone", error)
        return
    if run.world.faults.waits_for:
        judge_timed_states(run, stored)
        return
    states: dict[tuple[str, int, bytes], Any] = {}
    joined = joined_of(run.world.faults)
    is_determined = joined is not None and joined.is_determined
    for state, group, user_key, value in stored:
        if state.name == ROWS:
            _judge_rows(run, state.operator, group, int(value), stored)
        elif state.operator in (PAIRS, BOTH, VERSIONS):
            if state.is_declared and is_determined:
                states[(str(state), group, user_key)] = held_of(run, state, value)
        elif state.operator != ALARMS:
            states[(str(state), group, user_key)] = orjson.loads(value)
    expected = expected_states(run.world.faults)
    if states != expected:
        run.world.violated("the last checkpoint's state is wrong", f"{states}, the input makes {expected}")


def _judge_rows(run: Simulation, table: str, group: int, rows: int, stored: Sequence[Stored]) -> None:
    """The number of rows that a table tells is that of those it has."""
    there = sum((state.operator, state.is_declared, number) == (table, True, group) for state, number, _, _ in stored)
    if rows != there:
        run.world.violated("a table tells another number of rows", f"{rows} of {table} under {group}, not {there}")


def _difference(expected: Sequence[str], visible: Sequence[str]) -> str:
    missing = [value for value in expected if value not in visible]
    twice = sorted({value for value in visible if visible.count(value) > 1})
    strange = [value for value in visible if value not in expected]
    return f"missing {missing}, twice {twice}, strange {strange}, order {visible}"


def _stored(run: Simulation, path: str) -> Iterator[Stored]:
    """Yield what a checkpoint holds by key."""
    for snapshot in orjson.loads(run.folder.get(path))["body"]["snapshots"]:
        stored = sorted(_keyed_items(run, snapshot["state"]))
        for at, value in whole_states(stored, stored_by_entry(run.definition.state_serdes)):
            yield *at, value


def _keyed_items(run: Simulation, stored: Any) -> list[tuple[bytes, bytes]]:
    """What a snapshot has by key, wherever it is: with the metadata, or in a file."""
    path, items = stored["path"], stored["items"]
    if items is None:
        files = Manifest.decode(run.folder.get(manifest_of(path)), path).files
        file = next(file for file in files if file.name == STATE_FILE)
        items = orjson.loads(run.folder.get(file.stored))["body"]
    whole = Changes.of_json(items, path, is_whole=True).families[Family.KEYED]
    return [(key, value) for key, value in whole.items() if value is not None]
