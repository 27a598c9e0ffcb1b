"""A job as data: a graph of named operators, sources and sinks among them.

Invariants of a `JobDefinition`:

- Operators stand in topological order: every input of an operator stands before it.
- An operator's id is its name in the job, and no two have one; whatever is stored belongs to an id.
- Every path begins at a source and ends at a sink.
- A sink without inputs takes dead letters: the records that go wrong of the sources whose policy names it.
- Where an operator keeps state by key, no operator before it may change the key. That the inputs which meet there have
  the same number of partitions, the driver sees to when it plans (`twopc.partition_groups`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from twopc.ends import JobSink, JobSource
from twopc.error_policy import ErrorPolicy, Fail, checked_policy
from twopc.errors import ConfigurationError
from twopc.operators.steps import SETS_KEYS, KeyedStep, Step
from twopc.port import Port
from twopc.protocol.ids import checked_name
from twopc.serde import Serde
from twopc.sink import Sink
from twopc.source import Source
from twopc.state.layout import StateName


@dataclass(frozen=True, slots=True)
class Merge:
    """Several streams as one: the records of each in their order, those of different ones in any."""

    operator = "merge"

    def __str__(self) -> str:
        return "merge"


FAIL: ErrorPolicy = Fail()

What = Source | Step | Merge | Sink


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a job: its id, the ports that it takes records from, and what it does with them.

    `on_error`, of a source, is what becomes of its records that go wrong, wherever in the job that is.
    """

    id: str
    inputs: tuple[str, ...]
    what: What
    on_error: ErrorPolicy = FAIL

    def __str__(self) -> str:
        if isinstance(self.what, Source | Sink):
            kind, *rest = (
                f"{name}={value}" if name != "type" else str(value) for name, value in self.what.describe().items()
            )
            return f"{kind}({', '.join(rest)})"
        return str(self.what)


@dataclass(frozen=True, slots=True)
class JobOrigin:
    """Where a job was loaded from: the name of the module, and its file."""

    module: str
    path: Path


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """A complete and valid job: all that has to reach a subtask.

    `origin` is there as long as loading it again gives the same job, but for how it gets at brokers. `sources`, `sinks`
    and `steps` are the operators of each kind by their ids; a step stands between them, and has a function.
    """

    name: str
    operators: tuple[Operator, ...]
    origin: JobOrigin | None = field(default=None, compare=False, repr=False)
    sources: Mapping[str, Source] = field(init=False, compare=False, repr=False)
    sinks: Mapping[str, Sink] = field(init=False, compare=False, repr=False)
    steps: Mapping[str, Step] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, kind in (("sources", Source), ("sinks", Sink), ("steps", Step)):
            own = {each.id: each.what for each in self.operators if isinstance(each.what, kind)}
            object.__setattr__(self, name, own)
        refuse_duplicates(self.name, self.operators)
        refuse_scattered_keys(self.name, self.operators)
        self._refuse_loose_ends()

    @classmethod
    def in_a_row(cls, name: str, source: Source, steps: Sequence[Step], sink: Sink) -> JobDefinition:
        """Return the job of one source, steps one after the other, and one sink."""
        builder = GraphBuilder(name)
        last = builder.add(source)
        for step in steps:
            last = builder.add(step, (last,))
        builder.add(sink, (last,))
        return cls(name, builder.operators)

    @property
    def source(self) -> JobSource:
        """All sources as one, for the driver."""
        return JobSource(self.sources)

    @property
    def sink(self) -> JobSink:
        """All sinks as one, for the driver."""
        return JobSink(self.sinks)

    @property
    def error_policies(self) -> dict[str, ErrorPolicy]:
        """What becomes of the records of each source that go wrong, by operator id."""
        return {each.id: each.on_error for each in self.operators if isinstance(each.what, Source)}

    @property
    def dead_letters(self) -> dict[str, tuple[str, ...]]:
        """The sources whose dead letters each sink takes, by its operator id."""
        taken: dict[str, tuple[str, ...]] = {}
        for source, policy in self.error_policies.items():
            if policy.sink_id is not None:
                taken[policy.sink_id] = (*taken.get(policy.sink_id, ()), source)
        return taken

    @property
    def ends(self) -> dict[str, Source | Sink]:
        """Sources and sinks, by operator id."""
        return {**self.sources, **self.sinks}

    @property
    def keyed_inputs(self) -> dict[str, tuple[str, ...]]:
        """The sources from which records come to each operator that keeps state by key, by its id."""
        return {key: self.sources_before(key) for key, step in self.steps.items() if isinstance(step, KeyedStep)}

    def sources_before(self, operator: str) -> tuple[str, ...]:
        """The sources from which records come to an operator."""
        return tuple(each.id for each in upstream(self.operators, operator) if each.id in self.sources)

    @property
    def keyed_sources(self) -> frozenset[str]:
        """The sources whose splits belong to partition groups."""
        return frozenset().union(*self.keyed_inputs.values())

    @property
    def state_serdes(self) -> dict[StateName, Serde]:
        """How each state by key is encoded."""
        keyed = ((key, step) for key, step in self.steps.items() if isinstance(step, KeyedStep))
        return {StateName(key, name): serde for key, step in keyed for name, serde in step.states.items()}

    def replaced(self, parts: Mapping[str, Source | Step | Sink], name: str | None = None) -> JobDefinition:
        """Return the job in which these operators do something else; their ids and places are the same."""
        operators = tuple(replace(each, what=parts.get(each.id, each.what)) for each in self.operators)
        return replace(self, name=name or self.name, operators=operators, origin=None)

    def with_access(self, properties: Mapping[str, Any]) -> JobDefinition:
        """Return the job with Kafka properties that its sources and sinks have where they set none of their own."""
        ends = {key: end.with_access(properties) for key, end in self.ends.items()}
        return replace(self.replaced(ends), origin=self.origin)

    def describe(self) -> str:
        """Return the job as text: a line for each operator with its id, what it does, and where its records are from.

        Of an operator whose input stands on the line before, that is not said.
        """
        width = max(len(each.id) for each in self.operators)
        lines = [f"job {self.name}"]
        dead_letters = self.dead_letters
        before = ""
        for each in self.operators:
            inputs = each.inputs or tuple(f"errors of {source}" for source in dead_letters.get(each.id, ()))
            origin = "" if inputs in ((), (before,)) else f"  <- {', '.join(inputs)}"
            lines.append(f"  {each.id:{width}}  {each}{origin}")
            before = each.id
        return "\n".join(lines)

    def mermaid(self) -> str:
        """Return the job as a flowchart in Mermaid's language, which pages and issues show as a picture."""
        numbers = {each.id: number for number, each in enumerate(self.operators)}
        lines = ["flowchart TD"]
        for each in self.operators:
            opening, closing = ("([", "])") if each.id in self.ends else ("[", "]")
            text = _mermaid_text(each.id) + "<br>" + _mermaid_text(str(each))
            lines.append(f'  n{numbers[each.id]}{opening}"{text}"{closing}')
        lines += [
            f"  n{numbers[port.operator]} -->{f'|{port.output}|' if port.output else ''} n{numbers[each.id]}"
            for each in self.operators
            for port in map(Port.parse, each.inputs)
        ]
        lines += [
            f"  n{numbers[source]} -. errors .-> n{numbers[sink]}"
            for sink, sources in self.dead_letters.items()
            for source in sources
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the same as data."""
        operators = [
            {"id": each.id, "inputs": list(each.inputs), "what": str(each)}
            | ({"on_error": str(each.on_error)} if each.on_error.goes_on else {})
            for each in self.operators
        ]
        return {"job": self.name, "operators": operators}

    def _refuse_loose_ends(self) -> None:
        if not self.sources:
            raise ConfigurationError(f"job {self.name!r} has no source: begin with job.source(KafkaSource('topic'))")
        if not self.sinks:
            raise ConfigurationError(f"job {self.name!r} has no sink: end the chain with .sink(KafkaSink('topic'))")
        dead_letters = self.dead_letters
        for each in self.operators:
            if isinstance(each.what, Sink) and not each.inputs and each.id not in dead_letters:
                raise ConfigurationError(f"job {self.name!r}: nothing comes to {each.id}, {each}: leave it out")
        if missing := sorted(dead_letters.keys() - self.sinks.keys()):
            raise ConfigurationError(
                f"job {self.name!r} has no sink {missing[0]!r} for the dead letters of {dead_letters[missing[0]][0]!r}"
            )
        used = {Port.parse(before).operator for each in self.operators for before in each.inputs}
        for each in self.operators:
            if each.id not in used and each.id not in self.sinks:
                raise ConfigurationError(
                    f"job {self.name!r}: what comes out of {each.id}, {each}, goes nowhere: end it with "
                    ".sink(KafkaSink('topic')), or leave it out"
                )


class GraphBuilder:
    """A job that is being built. What is added is checked at once, as far as a part of a job can be."""

    def __init__(self, name: str) -> None:
        self.name = checked_name("job name", name)
        self.operators: tuple[Operator, ...] = ()
        self._kinds: Counter[str] = Counter()

    def add(
        self, what: What, inputs: tuple[str, ...] = (), name: str | None = None, on_error: ErrorPolicy = FAIL
    ) -> str:
        """Add an operator; return its id: the name that the user gave it, or its kind and which of this kind it is."""
        kind = _kind(what)
        self._kinds[kind] += 1
        if name is None and isinstance(what, KeyedStep):
            name = what.name
        if name is not None:
            checked_name(f"the name of a {kind}", name)
            # A sink is nobody's input, and may be named after its topic.
            if "." in name and not isinstance(what, Sink):
                raise ConfigurationError(f"the name of a {kind}, {name!r}, has a dot: give it one without")
        operator_id = f"{kind}-{self._kinds[kind]}" if name is None else name
        operators = (*self.operators, Operator(operator_id, inputs, what, checked_policy(self.name, on_error)))
        refuse_duplicates(self.name, operators)
        refuse_scattered_keys(self.name, operators)
        self.operators = operators
        return operator_id

    def definition(self) -> JobDefinition:
        """Return the complete job, with its sinks of dead letters; raise ConfigurationError for what is missing."""
        sinks = [each.what for each in self.operators if isinstance(each.what, Sink)]
        operators = self.operators
        for policy in (each.on_error for each in self.operators):
            if policy.sink_id is None or policy.sink_id in (each.id for each in operators if not each.inputs):
                continue
            if (sink := policy.dead_letter_sink(sinks)) is not None:
                operators = (*operators, Operator(policy.sink_id, (), sink))
        return JobDefinition(self.name, operators)


def upstream(operators: Sequence[Operator], of: str) -> Iterator[Operator]:
    """Yield every operator from which records come to this one, the nearest first."""
    wanted = {of}
    for each in reversed(operators):
        if each.id in wanted:
            wanted.update(Port.parse(before).operator for before in each.inputs)
            if each.id != of:
                yield each


def refuse_duplicates(job: str, operators: Sequence[Operator]) -> None:
    """Refuse two operators of one id."""
    seen: dict[str, Operator] = {}
    for each in operators:
        if (other := seen.get(each.id)) is not None:
            raise ConfigurationError(
                f"job {job!r} has more than one operator named {each.id!r}, {other} and {each}: what is stored for "
                "them would mix; give each a name of its own, with name="
            )
        seen[each.id] = each


def refuse_scattered_keys(job: str, operators: Sequence[Operator]) -> None:
    """State by key is kept by partition number: where records of one key come under several, it has several."""
    for keyed in operators:
        if not isinstance(keyed.what, KeyedStep):
            continue
        before = upstream(operators, keyed.id)
        if changing := next((each for each in before if isinstance(each.what, SETS_KEYS)), None):
            raise ConfigurationError(
                f"job {job!r}: {keyed} keeps a state for each key under each partition number, and {changing} before "
                "it may change the key: records of the new key may come from any partition, and each has a state of "
                f"its own. Put {keyed.what.operator} before it, and change values with map, filter and flat_map, which "
                "keep the key; or write the records to a topic with their new keys, and keep the state in a second job "
                "that reads that"
            )


def _kind(what: What) -> str:
    match what:
        case Source():
            return "source"
        case Sink():
            return "sink"
        case _:
            return what.operator


def _mermaid_text(text: str) -> str:
    """Return a text as it may stand in quotes: what has a meaning there is written as an entity."""
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
