"""State of a restored checkpoint that would be left behind, and nothing would say so: refused.

What the job no longer declares, unless a person gives it up by name: a state that was renamed would begin empty. And
what keys no longer find, because they are in other partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from twopc.errors import ConfigurationError
from twopc.state.backend import Family, StateBackend
from twopc.state.keyed import keyed_states
from twopc.state.layout import ELEMENTS, EXPIRIES, STREAM_TIME, StateName, state_prefix
from twopc.state.serdes import forget_serdes, read_serdes


def drop_undeclared(backend: StateBackend, declared: Collection[StateName], dropped: Collection[str]) -> None:
    """Delete the states that `dropped` names; raise ConfigurationError if others are there that are not `declared`.

    An operator's id names all states that it has. A state that is declared is never dropped: that is refused too.
    """
    operators = {state.operator for state in declared}
    if both := sorted(set(dropped) & operators.union(*map(_names, declared))):
        raise ConfigurationError(f"drop_states names {both[0]!r}, which the job declares: take it out of one of them")
    undeclared = set(read_serdes(backend)).difference(declared)
    # Time, what is to expire, and which number is next belong to states that have it: without one they say nothing.
    implied = (STREAM_TIME, EXPIRIES, ELEMENTS)
    given_up = {state for state in undeclared if not _names(state).isdisjoint(dropped) or state.name in implied}
    if lost := sorted({_shortest(state, operators) for state in undeclared - given_up}):
        there = ", ".join(repr(str(state)) for state in declared) or "none"
        raise ConfigurationError(
            f"the restored checkpoint has state {lost[0]!r}, and the job declares no state of that name (it declares: "
            f"{there}), so what it holds would be left behind: name the operator as it was, or give it up for good "
            f"with --drop-states {','.join(lost)}"
        )
    for state, partition in list(keyed_states(backend)):
        if state in given_up or not _names(state).isdisjoint(dropped):
            backend.delete_prefix(Family.KEYED, state_prefix(state, partition))
    forget_serdes(backend, undeclared)


def refuse_moved_keys(backend: StateBackend, moved: Mapping[str, str]) -> None:
    """Raise ConfigurationError where there is state of an operator whose keys are elsewhere now; `moved` says why."""
    for state, _ in keyed_states(backend):
        if why := moved.get(state.operator):
            raise ConfigurationError(why)


def _names(state: StateName) -> set[str]:
    return {str(state), state.operator, state.path}


def _shortest(state: StateName, operators: Collection[str]) -> str:
    """Return the shortest name by which this state is given up, and none of an operator that the job still has."""
    return state.path if state.operator in operators else state.operator
