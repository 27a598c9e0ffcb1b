"""A complete and valid job, as data: what its parts are, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from twopc.error_policy import ErrorPolicy
from twopc.graph.operator import Operator, upstream
from twopc.graph.rules import refuse_loose_ends, refuse_own_output, refuse_what_cannot_be
from twopc.job_connectors import JobSink, JobSource
from twopc.operators.broadcast import feeding_broadcasts
from twopc.operators.node import sending_sources
from twopc.operators.step import Step
from twopc.port import Port
from twopc.serde import Json, Serde
from twopc.sink import Sink
from twopc.source import Source
from twopc.state.layout import STREAM_TIME, StateName


@dataclass(frozen=True, slots=True)
class JobOrigin:
    """The origin of a job that was loaded: the name of the module, its file, and the folder that it was loaded in.

    `working_folder` is the one to which its file went from there: relative names in its functions are meant in it.
    """

    module: str
    path: Path
    folder: Path
    working_folder: Path


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """A complete and valid job: all that has to reach a subtask.

    `origin` is there as long as loading it again gives the same job, but for how it gets at brokers. `sources`, `sinks`
    and `steps` are the operators of each kind by their ids; a step stands between them, and has a function.
    `broadcasts` are the sources of broadcast tables.
    """

    name: str
    operators: tuple[Operator, ...]
    origin: JobOrigin | None = field(default=None, compare=False, repr=False)
    sources: Mapping[str, Source] = field(init=False, compare=False, repr=False)
    broadcasts: Mapping[str, Source] = field(init=False, compare=False, repr=False)
    sinks: Mapping[str, Sink] = field(init=False, compare=False, repr=False)
    steps: Mapping[str, Step] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        fed = feeding_broadcasts(self.operators)
        every = {operator.id: operator.operation for operator in self.operators}
        read = {key: what for key, what in every.items() if isinstance(what, Source)}
        object.__setattr__(self, "sources", {key: source for key, source in read.items() if key not in fed})
        object.__setattr__(self, "broadcasts", {key: source for key, source in read.items() if key in fed})
        object.__setattr__(self, "sinks", {key: sink for key, sink in every.items() if isinstance(sink, Sink)})
        object.__setattr__(self, "steps", {key: step for key, step in every.items() if isinstance(step, Step)})
        refuse_what_cannot_be(self.name, self.operators)
        refuse_loose_ends(self)
        refuse_own_output(self)

    @property
    def source(self) -> JobSource:
        """All sources as one, for the driver."""
        return JobSource(self.sources, self.stages, self.broadcasts)

    @property
    def sink(self) -> JobSink:
        """All sinks as one, for the driver."""
        return JobSink(self.sinks)

    @property
    def error_policies(self) -> dict[str, ErrorPolicy]:
        """The policy for the records of each source that go wrong, by operator id."""
        return {operator.id: operator.on_error for operator in self.operators if isinstance(operator.operation, Source)}

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
        """Sources, those of broadcast tables too, and sinks, by operator id."""
        return {**self.sources, **self.broadcasts, **self.sinks}

    @property
    def keyed_inputs(self) -> dict[str, tuple[str, ...]]:
        """The sources from which records come to each operator that works by key, by its id."""
        return {key: self.sources_before(key) for key, step in self.steps.items() if step.by_key}

    @property
    def timed_inputs(self) -> dict[str, tuple[str, ...]]:
        """The sources from which records come to each place where the order of event time counts, by an operator's id.

        That is an operator by key, or the sink of a `key_by` before one. Functions of `stateful_map` see no time.
        """
        behind = {operator.id: operator.behind for operator in self.operators if operator.behind is not None}
        timed = self.keyed_inputs.items()
        found = {key: before for key, before in timed if self.steps[key].sees_time}
        sources = [source for before in found.values() for source in before]
        while sources:
            sink = behind.get(sources.pop())
            if sink is not None and sink not in found:
                found[sink] = self.sources_before(sink)
                sources += found[sink]
        return found

    @property
    def marked_sinks(self) -> dict[str, str]:
        """The source behind each sink that writes to a topic of the job's own, where event time goes through that."""
        timed = self.timed_inputs
        return {
            operator.behind: operator.id
            for operator in self.operators
            if operator.behind in timed and isinstance(operator.operation, Source) and operator.operation.has_marks
        }

    @property
    def met_by_marks(self) -> dict[str, frozenset[str]]:
        """The sources without marks that each with some meets, where the order of event time counts."""
        marked, met = frozenset(self.marked_sinks.values()), dict[str, frozenset[str]]()
        for place in self.timed_inputs:
            before = sending_sources(self.operators, place)
            for source in before & marked:
                met[source] = met.get(source, frozenset()) | before - marked
        return met

    @property
    def stages(self) -> dict[str, int]:
        """The stage of each source: 0, or one more than those whose records come to the sink that it is behind."""
        stages: dict[str, int] = {}
        for operator in self.operators:
            if operator.id in self.sources:
                before = () if operator.behind is None else self.sources_before(operator.behind)
                stages[operator.id] = max((stages[source] + 1 for source in before), default=0)
        return stages

    def sources_before(self, operator: str) -> tuple[str, ...]:
        """The sources from which records come to an operator."""
        return tuple(each.id for each in upstream(self.operators, operator) if each.id in self.sources)

    def sources_behind(self, sink: str) -> frozenset[str]:
        """The sources that are meant to read what a sink of the job writes."""
        return frozenset(operator.id for operator in self.operators if operator.behind == sink)

    @property
    def keyed_sources(self) -> frozenset[str]:
        """The sources whose splits belong to partition groups."""
        return frozenset().union(*self.keyed_inputs.values(), *self.timed_inputs.values())

    @property
    def state_serdes(self) -> dict[StateName, Serde]:
        """The serde of each state by key."""
        marked = self.marked_sinks
        told = chain(marked, marked.values(), *self.met_by_marks.values())
        times: dict[StateName, Serde] = {StateName(key, STREAM_TIME): Json() for key in told}
        steps = self.steps.items()
        return {StateName(key, name): serde for key, step in steps for name, serde in step.states.items()} | times

    def replaced(self, parts: Mapping[str, Source | Step | Sink], name: str | None = None) -> JobDefinition:
        """Return the job in which these operators do something else; their ids and places are the same."""
        operators = tuple(
            replace(operator, operation=parts.get(operator.id, operator.operation)) for operator in self.operators
        )
        return replace(self, name=name or self.name, operators=operators, origin=None)

    def with_access(self, properties: Mapping[str, Any]) -> JobDefinition:
        """Return the job with Kafka properties that its sources and sinks have where they set none of their own."""
        ends = {key: end.with_access(properties) for key, end in self.ends.items()}
        return replace(self.replaced(ends), origin=self.origin)

    def describe(self) -> str:
        """Return the job as text: a line for each operator with its id, what it does, and where its records are from.

        Of an operator whose input stands on the line before, that is not said.
        """
        width = max(len(operator.id) for operator in self.operators)
        lines = [f"job {self.name}"]
        dead_letters = self.dead_letters
        before = ""
        for operator in self.operators:
            inputs = operator.inputs or tuple(f"errors of {source}" for source in dead_letters.get(operator.id, ()))
            if operator.behind is not None:
                inputs = (operator.behind,)
            origin = "" if inputs in ((), (before,)) else f"  <- {', '.join(inputs)}"
            lines.append(f"  {operator.id:{width}}  {operator}{origin}")
            before = operator.id
        return "\n".join(lines)

    def mermaid(self) -> str:
        """Return the job as a flowchart in Mermaid's language, which pages and issues show as a picture."""
        numbers = {each.id: number for number, each in enumerate(self.operators)}
        lines = ["flowchart TD"]
        for operator in self.operators:
            opening, closing = ("([", "])") if operator.id in self.ends else ("[", "]")
            text = _mermaid_text(operator.id) + "<br>" + _mermaid_text(str(operator))
            lines.append(f'  n{numbers[operator.id]}{opening}"{text}"{closing}')
        lines += [
            f"  n{numbers[port.operator]} -->{f'|{port.output}|' if port.output else ''} n{numbers[operator.id]}"
            for operator in self.operators
            for port in map(Port.parse, operator.inputs)
        ]
        lines += [
            f"  n{numbers[operator.behind]} --> n{numbers[operator.id]}"
            for operator in self.operators
            if operator.behind
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
            {"id": operator.id, "inputs": list(operator.inputs), "what": str(operator)}
            | ({"on_error": str(operator.on_error)} if operator.on_error.goes_on else {})
            | ({"errors_to": operator.on_error.sink_id} if operator.on_error.sink_id else {})
            | ({"behind": operator.behind} if operator.behind else {})
            for operator in self.operators
        ]
        return {"job": self.name, "operators": operators}


def _mermaid_text(text: str) -> str:
    """Return a text as it may stand in quotes: what has a meaning there is written as an entity."""
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
