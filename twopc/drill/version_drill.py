"""The version drill: two versions of a job on one checkpoint, and what each makes of the input since then, compared.

Nothing runs and nothing is written but the copy of the checkpoint: what either version makes is worked out in this
process, from the same state, over the same input, one version after the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from twopc.checkpoints.archive import opened
from twopc.config import RunSettings
from twopc.drill.checkpoint_copy import copy_restorable
from twopc.drill.folder import drill_folder
from twopc.drill.restore_checks import judge_positions
from twopc.drill.timeline import Timeline
from twopc.drill.verdict import Check, CheckVerdict, DrillResult, versions
from twopc.drill.version import Restoration, Version, dropped_of, refuse_other_input
from twopc.drill.version_diff import VersionOutput, diff, failed
from twopc.driver.restore_checks import refuse_unread_inputs
from twopc.errors import CheckpointCorrupted, ConfigurationError, NotJudged
from twopc.kafka.input.topic_reader import Ranges
from twopc.kafka.positions.partition_position import input_of, partition_positions
from twopc.listing import listed
from twopc.protocol.facts import CheckpointMetadata
from twopc.storage.local import LocalStore
from twopc.storage.open import open_store
from twopc.storage.scratch_folder import CHECKPOINTS

STATE = "state"


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """A job file, that of the other version, and a checkpoint of the job of the first; else as a restore drill."""

    job_file: str
    against: str
    checkpoint_dir: str
    restore_from: str = "latest"
    scratch_dir: Path | None = None
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)


def version_drill(plan: VersionPlan, settings: RunSettings, *, say: Callable[[str], None]) -> DrillResult:
    """Compare, and leave nothing behind but the result. Raises what kept the versions from being compared."""
    with drill_folder(plan.scratch_dir) as folder:
        return _Drill(plan, settings, folder, say).run()


class _Drill:
    def __init__(self, plan: VersionPlan, settings: RunSettings, folder: Path, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._settings = settings
        self._folder = folder
        self._say = say
        self._timeline = Timeline()
        self._one, self._other = (Version.of(file, plan.access, settings) for file in (plan.job_file, plan.against))
        refuse_other_input(self._one, self._other)
        self._dropped = dropped_of(self._one, self._other, frozenset(settings.drop_states))

    def run(self) -> DrillResult:
        restoration = self._restoration()
        to_read = sum(end - restoration.starts[partition] for partition, end in restoration.ends.items())
        made: list[VersionOutput] = []
        states: list[str] = []
        for version, dropped in zip((self._one, self._other), self._dropped, strict=True):
            self._tell(f"working out what {version.file} makes of {to_read:,} records")
            work = replace(restoration, work=self._folder / f"version-{len(made)}")
            output, new = version.make(work, dropped)
            made.append(output)
            states.append(_state_told(version, dropped, new))
        check, figures = self._judged(*made)
        return DrillResult(
            drill="version",
            job=self._one.job,
            began_ms=int(self._timeline.began * 1000),
            seconds=time.time() - self._timeline.began,
            subject=f"{self._one.file} against {self._other.file}, checkpoint {restoration.metadata.checkpoint_id}",
            checks=(Check(STATE, CheckVerdict.HELD, "; ".join(states)), check),
            figures={"input, records": float(to_read), **figures},
            timeline=self._timeline.in_order(),
            settings={**versions(), **self._left_out()},
        )

    def _left_out(self) -> dict[str, str]:
        reasons = dict.fromkeys(reason for version in (self._one, self._other) for reason in version.drilled.left_out)
        return {"not compared": "; ".join(reasons)} if reasons else {}

    def _judged(self, one: VersionOutput, other: VersionOutput) -> tuple[Check, dict[str, float]]:
        if one.failure and other.failure:
            raise NotJudged(f"both versions fail, so there is no output to compare: {_failures(one, other)}")
        if (check := failed(one, other)) is not None:
            return check, {}
        if self._one.output and self._other.output:
            # Each has one topic: a version may write to another one while it is tried.
            other = replace(other, made=[(self._one.output, output) for _, output in other.made])
        self._tell("comparing the output")
        found = diff(one, other)
        return found.check(), found.figures

    def _restoration(self) -> Restoration:
        """Copy the checkpoint, and fix from where to where the input is read."""
        self._tell(f"reading the checkpoints of job {self._one.job}")
        metadata, copies = self._copied()
        dropped = frozenset(self._settings.drop_inputs)
        inputs = self._one.inputs
        refuse_unread_inputs(metadata, lambda split: input_of(split) in inputs, input_of, inputs, dropped)
        held = [
            position for position in partition_positions(metadata.positions) if position.partition.topic not in dropped
        ]
        ranges = self._ranges(metadata, dropped)
        at = {each.partition: each.position for each in held}
        starts = {partition: at.get(partition, first) for partition, (first, _) in ranges.items()}
        ends = {partition: max(end, starts[partition]) for partition, (_, end) in ranges.items()}
        if ends == starts:
            raise NotJudged(
                f"no input stands behind checkpoint {metadata.checkpoint_id}, so there is nothing to compare: name an "
                "older one with --from"
            )
        return Restoration(metadata, copies / metadata.job, self._folder, starts, ends)

    def _copied(self) -> tuple[CheckpointMetadata, Path]:
        copies = self._folder / CHECKPOINTS
        with opened(self._plan.restore_from, open_store(self._plan.checkpoint_dir), self._one.job) as located:
            metadata, damages = copy_restorable(located, LocalStore(copies))
            if damages:
                raise located.refusal(CheckpointCorrupted(listed(damages)))
        return metadata, copies

    def _ranges(self, metadata: CheckpointMetadata, dropped: frozenset[str]) -> Ranges:
        """Ask for the input; raise NotJudged if it can't be read from the checkpoint on any more."""
        topics, others = self._one.drilled.input_topics(), self._other.drilled.input_topics()
        for name, topic in topics.items():
            if name not in others or others[name].topic_id != topic.topic_id:
                raise ConfigurationError(
                    f"--against: {self._other.file} reads topic {name!r} of another cluster than {self._one.file}: "
                    "see bootstrap_servers of its source"
                )
        held = [
            position for position in partition_positions(metadata.positions) if position.partition.topic not in dropped
        ]
        check = judge_positions(held, self._one.drilled.offset_statuses(held))
        if check.verdict is not CheckVerdict.HELD:
            raise NotJudged(f"checkpoint {metadata.checkpoint_id}: {check.text}: {listed(check.findings)}")
        return self._one.drilled.input_ranges()

    def _tell(self, what: str) -> None:
        self._timeline.say("drill", what)
        self._say(what)


def _failures(*outputs: VersionOutput) -> str:
    return "; ".join(f"{output.version}: {output.failure}" for output in outputs)


def _state_told(version: Version, dropped: frozenset[str], new: Sequence[str]) -> str:
    parts = [f"leaves {', '.join(sorted(dropped))} behind"] if dropped else []
    parts += [f"begins {', '.join(new)} empty, which the checkpoint does not have"] if new else []
    return f"{version.file} {' and '.join(parts) or 'has all states of the checkpoint'}"
