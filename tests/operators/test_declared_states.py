"""What a processor keeps is declared in its class; whatever else looks like a state is refused by name."""

from __future__ import annotations

import pytest

from twopc import ConfigurationError, Context, Json, ListState, MapState, Processor, Record, ValueState
from twopc.operators import Process


class _Plain(Processor):
    def process(self, record: Record, context: Context) -> None: ...


class _TwoNames(_Plain):
    first = ValueState(Json())
    second = first


class _Base(_Plain):
    first = ValueState(Json())


class _Again(_Base):
    second = _Base.first


class _InInit(_Plain):
    def __init__(self) -> None:
        self.count = ValueState(Json())


class _ManyInInit(_Plain):
    def __init__(self) -> None:
        self.counts = {"a": ListState(Json())}


class _Collected(_Plain):
    counts = (1, MapState(Json()))


class _Hidden(_Plain):
    count = ValueState(Json())

    def __init__(self) -> None:
        vars(self)["count"] = 0


class _Late(_Plain): ...


setattr(_Late, "count", ValueState(Json()))  # noqa: B010 - as a decorator of a class would


@pytest.mark.parametrize(
    ("processor", "said"),
    [
        (_TwoNames(), r"state 'first' of _TwoNames is also 'second'"),
        (_Again(), r"state 'first' of _Again is also 'second'"),
        (_InInit(), r"'count' of _InInit is or holds a ValueState that is not declared"),
        (_ManyInInit(), r"'counts' of _ManyInInit is or holds a ListState that is not declared"),
        (_Collected(), r"'counts' of _Collected is or holds a MapState that is not declared"),
        (_Hidden(), r"_Hidden declares a state 'count', and its object has another attribute of that name"),
        (_Late(), r"state 'count' of _Late was put there when the class was made already"),
    ],
)
def test_a_state_that_would_not_be_its_key_s_own_is_refused_by_name(processor: Processor, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Process(processor, "op")


def test_a_derived_class_may_declare_a_state_anew_or_hide_one() -> None:
    class Other(_Hidden):
        count = ListState(Json())  # type: ignore[assignment]

        def __init__(self) -> None: ...

    class Hiding(Other):
        count = None  # type: ignore[assignment]

    assert [list(type(each).declared_states()) for each in (Other(), Hiding())] == [["count"], []]
    for each in (Other(), Hiding()):
        Process(each, "op")
