"""A state that the job no longer declares is refused, or dropped by name."""

from __future__ import annotations

import pytest

from twopc.errors import ConfigurationError
from twopc.serde import Json
from twopc.state.backend import Family
from twopc.state.keyed import keyed_states
from twopc.state.layout import StateName, state_prefix
from twopc.state.memory import MemoryBackend
from twopc.state.schema_check import drop_undeclared, refuse_moved_keys
from twopc.state.serdes import read_serdes, write_serdes

COUNT, LAST = StateName.parse("count"), StateName.parse("last")
PARTITIONS = [0, 3]


@pytest.fixture
def backend() -> MemoryBackend:
    made = MemoryBackend()
    write_serdes(made, {COUNT: Json(), LAST: Json()})
    keys = [state_prefix(name, partition) + b"k" for partition in PARTITIONS for name in (COUNT, LAST)]
    made.put_many(Family.KEYED, [(key, b"1") for key in keys])
    return made


def test_a_renamed_state_is_refused_with_what_to_do(backend: MemoryBackend) -> None:
    with pytest.raises(ConfigurationError, match=r"state 'count'.*declares: 'tally', 'last'.*--drop-states count"):
        drop_undeclared(backend, [StateName.parse("tally"), LAST], [])
    assert backend.key_count() == 4


def test_a_job_that_declares_what_is_there_goes_on_and_a_new_state_is_fine(backend: MemoryBackend) -> None:
    drop_undeclared(backend, [COUNT, LAST, StateName.parse("new")], [])
    drop_undeclared(MemoryBackend(), [COUNT], [])
    assert backend.key_count() == 4


def test_a_state_that_is_given_up_is_deleted_in_every_partition_and_asked_about_no_more(backend: MemoryBackend) -> None:
    drop_undeclared(backend, [LAST], ["count"])
    left = [key for key, _ in backend.scan(Family.KEYED, b"")]
    assert left == [state_prefix(LAST, partition) + b"k" for partition in PARTITIONS]
    assert list(read_serdes(backend)) == [LAST]
    drop_undeclared(backend, [LAST], [])


def test_a_state_that_the_job_declares_is_never_dropped(backend: MemoryBackend) -> None:
    with pytest.raises(ConfigurationError, match="drop_states names 'count'"):
        drop_undeclared(backend, [COUNT, LAST], ["count"])
    assert backend.key_count() == 4


@pytest.mark.parametrize(("dropped", "left"), [("joined", []), ("joined/left", ["joined/right"])])
def test_an_operator_is_given_up_with_all_its_states_or_with_one(dropped: str, left: list[str]) -> None:
    backend = MemoryBackend()
    states = [StateName("joined", "left"), StateName("joined", "right")]
    write_serdes(backend, dict.fromkeys(states, Json()))
    backend.put_many(Family.KEYED, [(state_prefix(each, 3) + b"k", b"1") for each in states])
    drop_undeclared(backend, list(map(StateName.parse, left)), [dropped])
    assert list(map(str, read_serdes(backend))) == left
    assert [str(state) for state, _ in keyed_states(backend)] == left


def test_a_state_is_given_up_of_an_operator_that_keeps_another_also_one_of_the_operators_name() -> None:
    backend = MemoryBackend()
    kept, lost = StateName("seen", "first"), StateName("seen", "seen")
    write_serdes(backend, {kept: Json(), lost: Json()})
    backend.put_many(Family.KEYED, [(state_prefix(state, 0) + b"k", b"1") for state in (kept, lost)])
    with pytest.raises(ConfigurationError, match=r"--drop-states seen/seen$"):
        drop_undeclared(backend, [kept], [])
    drop_undeclared(backend, [kept], ["seen/seen"])
    assert [state for state, _ in keyed_states(backend)] == [kept]


def test_an_operator_that_is_gone_is_named_once_with_all_that_it_kept() -> None:
    backend = MemoryBackend()
    states = [StateName("seen", name) for name in ("first", "last", "$stream-time", "$timers")]
    write_serdes(backend, dict.fromkeys(states, Json()))
    with pytest.raises(ConfigurationError, match=r"state 'seen'.*--drop-states seen$"):
        drop_undeclared(backend, [], [])
    drop_undeclared(backend, [], ["seen"])
    assert not read_serdes(backend)


def test_what_was_to_expire_is_given_up_with_the_last_state_that_expires() -> None:
    backend = MemoryBackend()
    kept, expiring, due = (StateName("seen", name) for name in ("kept", "expiring", "$expiries"))
    write_serdes(backend, dict.fromkeys((kept, expiring, due), Json()))
    backend.put_many(Family.KEYED, [(state_prefix(state, 0) + b"k", b"1") for state in (kept, expiring, due)])
    drop_undeclared(backend, [kept], ["seen/expiring"])
    assert [state for state, _ in keyed_states(backend)] == [kept]


def test_state_whose_keys_are_in_other_partitions_is_refused_where_there_is_any(backend: MemoryBackend) -> None:
    refuse_moved_keys(backend, {})
    refuse_moved_keys(backend, {"renamed": "its keys are elsewhere"})
    with pytest.raises(ConfigurationError, match="its keys are elsewhere"):
        refuse_moved_keys(backend, {"last": "its keys are elsewhere"})
