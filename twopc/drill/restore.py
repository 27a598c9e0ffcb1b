"""The restore drill: a saved checkpoint of a real job, restored beside it, replayed to an end, and judged.

Order: copy and verify the checkpoint; ask the broker about positions and pending transactions; fix where input and
output end; replay; compare. A check that fails keeps those from being made that would mean nothing then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from twopc import events
from twopc.checkpoints.archive import opened
from twopc.checkpoints.catalog import JobCheckpoints
from twopc.config import RunSettings
from twopc.drill.checkpoint_copy import copy_restorable
from twopc.drill.folder import drill_folder
from twopc.drill.job import DrillJob
from twopc.drill.pending_transactions import judge_pending
from twopc.drill.real_output import OUTPUT
from twopc.drill.recovery import judge_catching_up
from twopc.drill.replay import REPLAY, Replay
from twopc.drill.replay_range import ReplayRange
from twopc.drill.restore_checks import POSITIONS, TRANSACTIONS, judge_positions
from twopc.drill.timeline import Timeline
from twopc.drill.verdict import Check, CheckVerdict, DrillResult, versions
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.kafka.positions.partition_position import partition_positions
from twopc.loader.job_loader import load_job
from twopc.protocol.facts import CheckpointMetadata
from twopc.storage.open import open_store
from twopc.storage.scratch_folder import CHECKPOINTS

READABLE = "readable"
CHECKS = (READABLE, POSITIONS, TRANSACTIONS, REPLAY, OUTPUT)

OnEvent = Callable[[events.Event], None]


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The plan: a job file, and a checkpoint of the job as `twopc.checkpoints.reference` names them.

    `parallelism` is the checkpoint's own unless given. `scratch_dir` is where copies go. `access` are client settings
    with which the drill itself gets at the brokers, where the job's own don't do. `interrupt`: the replay is killed
    once, in the middle. `max_recovery_seconds` is how long it may take to catch up.
    """

    job_file: str
    checkpoint_dir: str
    restore_from: str = "latest"
    parallelism: int | None = None
    scratch_dir: Path | None = None
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    interrupt: bool = True
    max_recovery_seconds: float | None = None


def restore_drill(
    plan: RestorePlan, settings: RunSettings, *, say: Callable[[str], None], on_event: OnEvent | None = None
) -> DrillResult:
    """Drill, and leave nothing behind but the result. Raises what kept the drill from running.

    `settings` are those of the scratch run; what would let it meet the real job is not taken from them.
    """
    with drill_folder(plan.scratch_dir) as folder:
        return _Drill(plan, scratch_settings(settings, folder), folder, say, on_event).run()


def scratch_settings(settings: RunSettings, folder: Path) -> RunSettings:
    """Nothing that the run shares with the real job is left in its settings; the first failure ends it."""
    if settings.host == "spark" and settings.master and not settings.master.startswith("local"):
        raise ConfigurationError(
            f"a drill runs its subtasks on this machine, and can't under master {settings.master!r}: give --host "
            "process, or a local master"
        )
    return replace(
        settings,
        checkpoint_dir=str(folder / CHECKPOINTS),
        coordinator=None,
        coordinator_token="",
        coordinator_ca="",
        coordinator_cert="",
        coordinator_key="",
        metrics_port=None,
        ui_port=None,
        traces=False,
        otlp_metrics=False,
        accept_loss=(),
        until_end=True,
        restart_strategy="none",
    )


class _Drill:
    def __init__(
        self,
        plan: RestorePlan,
        settings: RunSettings,
        folder: Path,
        say: Callable[[str], None],
        on_event: OnEvent | None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._folder = folder
        self._say = say
        self._on_event = on_event
        self._job = DrillJob.of(load_job(plan.job_file).with_access(plan.access), settings, plan.access)
        self._timeline = Timeline()
        self._checks: list[Check] = []
        self._figures: dict[str, float | None] = {}
        self._subject = f"checkpoint {plan.restore_from}"

    def run(self) -> DrillResult:
        self._tell(f"reading the checkpoints of job {self._job.name}")
        try:
            found, metadata, damages = self._copied()
        except CheckpointCorrupted as error:
            self._note(Check(READABLE, CheckVerdict.BROKEN, f"{self._subject} can't be restored", (str(error),)))
            return self._result()
        size = sum(snapshot.state.size_bytes for snapshot in metadata.snapshots)
        held = f"{self._subject} is complete: every file of its {size:,} bytes is as it was stored"
        self._note(Check.of(READABLE, damages, held=held, broken=f"{self._subject} can't be restored"))
        self._settings = replace(self._settings, parallelism=self._plan.parallelism or metadata.parallelism)
        self._figures["checkpoint age (RPO), s"] = self._timeline.began - metadata.triggered_ms / 1000
        dropped = frozenset(self._settings.drop_inputs)
        read = [
            position for position in partition_positions(metadata.positions) if position.partition.topic not in dropped
        ]
        self._note(judge_positions(read, self._job.offset_statuses(read)))
        self._note(judge_pending(found, self._job))
        if all(check.verdict is CheckVerdict.HELD for check in self._checks[:2]):
            self._replay(found, metadata)
        return self._result()

    def _copied(self) -> tuple[JobCheckpoints, CheckpointMetadata, list[str]]:
        """Copy the checkpoint that is named; return all that are kept, what it restores, and what is damaged of it."""
        job = self._job.name
        with opened(self._plan.restore_from, open_store(self._plan.checkpoint_dir), job) as located:
            self._subject = f"checkpoint {located.checkpoint_id}"
            return located.found, *copy_restorable(located, open_store(self._settings.checkpoint_dir))

    def _replay(self, found: JobCheckpoints, metadata: CheckpointMetadata) -> None:
        replay_range = ReplayRange.fix(metadata, found, self._job)
        self._figures["records to replay"] = float(replay_range.to_replay)
        replay = Replay(
            job=self._job,
            job_file=self._plan.job_file,
            metadata=metadata,
            replay_range=replay_range,
            settings=self._settings,
            folder=self._folder,
            timeline=self._timeline,
            tell=self._tell,
            on_event=self._on_event,
            interrupt=self._plan.interrupt,
        )
        for check in replay.play(self._figures):
            self._note(check)
        if self._plan.max_recovery_seconds is not None:
            took = self._figures.get("caught up after (RTO), s")
            self._note(judge_catching_up(took, self._plan.max_recovery_seconds))

    def _note(self, check: Check) -> None:
        self._checks.append(check)
        self._tell(f"{check.name}: {check.verdict.value}: {check.text}")

    def _tell(self, what: str) -> None:
        self._timeline.say("drill", what)
        self._say(what)

    def _result(self) -> DrillResult:
        done = {check.name for check in self._checks}
        rest = [Check.not_judged(name, "an earlier check does not let it") for name in CHECKS if name not in done]
        return DrillResult(
            drill="restore",
            job=self._job.name,
            began_ms=int(self._timeline.began * 1000),
            seconds=time.time() - self._timeline.began,
            subject=self._subject,
            checks=(*self._checks, *rest),
            figures=self._figures,
            timeline=self._timeline.in_order(),
            settings={**versions(), "host": self._settings.host, "parallelism": self._settings.parallelism},
        )
