"""The fault drill: the job on scratch topics, a plan of faults from a seed, and a judgement of all that it leaves.

Order: fill the scratch input; run the job to its end while the faults happen, each at its step; wait until nothing is
open; hold output, state and positions against what the input makes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from twopc.checkpoints.catalog import read_job
from twopc.config import RunSettings
from twopc.drill.broker import Cluster
from twopc.drill.comparing import Ends, judged
from twopc.drill.expected import Reckoner
from twopc.drill.fault_drill_plan import FaultDrillPlan
from twopc.drill.fault_judging import (
    STATE,
    TRANSACTIONS,
    KeyedStates,
    judge_end,
    judge_faults,
    judge_output,
    judge_state,
    judge_transactions,
)
from twopc.drill.faults import FaultPlan, Kind, choices, draw
from twopc.drill.folder import KAFKA, drill_folder
from twopc.drill.own_broker import OwnBroker
from twopc.drill.paced import READS, without_access, write_paced_file
from twopc.drill.playing import play
from twopc.drill.real_output import OUTPUT
from twopc.drill.recovery import Recovery, RecoveryTimes, figures_of, judge_recovery, reads_again, reads_of
from twopc.drill.scratch import Names, parts_of
from twopc.drill.stage import Stage
from twopc.drill.strikes import Striker
from twopc.drill.timeline import Timeline
from twopc.drill.verdict import Check, DrillResult, Verdict, versions
from twopc.errors import ConfigurationError, Unavailable, UserCodeError
from twopc.kafka.sink import DeliveryGuarantee
from twopc.loader.job_loader import load_job
from twopc.protocol.job_events import JobEvent
from twopc.storage.local import LocalStore
from twopc.verify.history import Expected

SECONDS_A_CHECKPOINT = 1.5
"""More than one takes on a busy machine: once all faults have happened, the rest is read as fast as it goes."""
INTERVALS_A_CHECKPOINT = 1.5

OnEvent = Callable[[JobEvent], None]


def fault_drill(
    plan: FaultDrillPlan, settings: RunSettings, *, say: Callable[[str], None], on_event: OnEvent | None = None
) -> DrillResult:
    """Drill, and leave nothing behind but the result. Raises what kept the drill from running.

    Without `bootstrap_servers` in the settings a local Kafka is started, and may be struck; brokers that are not the
    drill's own never are.
    """
    with ExitStack() as closing:
        folder = closing.enter_context(drill_folder(plan.scratch_dir))
        parts_of(load_job(plan.job_file))
        if plan.load.copy and not settings.bootstrap_servers:
            raise ConfigurationError("--copy takes records of the real input: name its brokers (--bootstrap-servers)")
        broker = None
        if not settings.bootstrap_servers:
            say("starting a local Kafka")
            broker = closing.enter_context(OwnBroker(folder / KAFKA))
        servers = settings.bootstrap_servers if broker is None else broker.bootstrap_servers
        made = replace(settings, bootstrap_servers=servers, parallelism=plan.parallelism, host="process")
        if broker is not None:
            made = replace(made, kafka_config="", kafka_properties={})
        return _Drill(plan, made, folder, say, on_event, broker).run()


@dataclass(frozen=True, slots=True)
class _Made:
    """What the whole input makes, and where it ends."""

    expected: list[Expected]
    ends: Ends
    keyed: KeyedStates


class _Drill:
    def __init__(
        self,
        plan: FaultDrillPlan,
        settings: RunSettings,
        folder: Path,
        say: Callable[[str], None],
        on_event: OnEvent | None,
        broker: OwnBroker | None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._folder = folder
        self._say = say
        self._on_event = on_event
        self._broker = broker
        definition = load_job(plan.job_file)
        self._definition = definition.with_access(plan.access) if broker is None else without_access(definition)
        self._source, sink = parts_of(self._definition)
        self._cluster = Cluster(settings.bootstrap_servers, {**sink.properties, **plan.access})
        self._names = Names.fresh()
        self._input = f"{self._names.name}-in"
        self._guarantee = sink.delivery_guarantee
        transactional = self._guarantee is DeliveryGuarantee.EXACTLY_ONCE
        kinds = choices(own_broker=broker is not None, transactional=transactional)
        self._faults: FaultPlan = draw(plan.seed, plan.faults, kinds, transactional=transactional)
        if broker is not None and any(each.kind is Kind.EXPIRE_TRANSACTION for each in self._faults.faults):
            broker.let_transactions_expire()
        a_checkpoint = max(SECONDS_A_CHECKPOINT, INTERVALS_A_CHECKPOINT * settings.checkpoint_interval_ms / 1000)
        self._pace_seconds = a_checkpoint * (self._faults.last_checkpoint + 2)
        self._timeline = Timeline()
        self._times = RecoveryTimes()
        self._recoveries: tuple[Recovery, ...] = ()
        self._checks: list[Check] = []
        self._records = 0

    def run(self) -> DrillResult:
        with self._cluster, self._scratch():
            servers = self._settings.bootstrap_servers
            self._tell("filling the scratch input")
            self._records = self._plan.load.fill(self._cluster, servers, self._input, self._plan.job_file, self._source)
            made = self._reckon()
            self._cluster.create_topic(self._names.output, len(made.ends))
            job_file = write_paced_file(
                self._folder,
                self._plan.job_file,
                own_broker=self._broker is not None,
                name=self._names.name,
                source=self._input,
                target=self._names.output,
                rate=self._records / self._plan.parallelism / self._pace_seconds,
                finish=self._finish,
            )
            arms = [fault.arm for fault in self._faults.faults]
            stage = Stage(self._folder, servers, job_file, self._settings, arms)
            with stage:
                finished = self._play(stage)
            if finished:
                self._judge(stage, load_job(job_file).name, made)
        return self._result()

    @contextmanager
    def _scratch(self) -> Iterator[None]:
        """Have the scratch names on the brokers, and nothing of them afterwards."""
        # Whoever is not let in is told so before anything is created, and in words.
        self._cluster.control.topics([self._input])
        try:
            yield
        finally:
            self._tell("deleting what the drill has made")
            if self._broker is None:
                with suppress(Unavailable):
                    self._cluster.delete_group(self._names.group)
                for topic in (self._input, self._names.output):
                    with suppress(Unavailable):
                        self._cluster.delete_topic(topic)

    def _play(self, stage: Stage) -> bool:
        """Run the job to its end while the faults happen; return whether it came there."""
        striker = Striker(
            stage,
            self._names.name,
            self._cluster.control,
            self._broker,
            lambda what: self._tell(what, "faults"),
        )
        faults = self._faults.faults
        finished = play(
            stage, faults, striker, self._finish, lambda: self._take_events(stage), pace_seconds=self._pace_seconds
        )
        self._note(judge_end(stage, striker, finished=finished))
        self._note(judge_faults(striker, faults))
        again = reads_again(reads_of(self._finish.with_name(READS)))
        self._recoveries = self._times.of(striker.struck, again)
        if self._plan.max_recovery_seconds is not None:
            self._note(judge_recovery(self._recoveries, self._plan.max_recovery_seconds))
        return finished

    @property
    def _finish(self) -> Path:
        """The file that tells the job to read as fast as it can."""
        return self._folder / "finish"

    def _take_events(self, stage: Stage) -> None:
        for event in stage.new_events():
            self._times.note(event)
            self._timeline.note(event)
            if self._on_event is not None:
                self._on_event(event)

    def _reckon(self) -> _Made:
        """Work out what the input makes; raise ConfigurationError where the job can't take it, before it tries."""
        self._tell("working out what the output must be")
        read = self._cluster.ranges(self._cluster.control.topics([self._input]))
        starts: Ends = {each: first for each, (first, _) in read.items()}
        ends: Ends = {each: end for each, (_, end) in read.items()}
        with Reckoner(self._definition, None, self._folder, self._folder / "reckoner") as reckoner:
            try:
                made = list(reckoner.reckon(self._settings.bootstrap_servers, starts, ends))
            except UserCodeError as error:
                raise ConfigurationError(f"{self._plan.load.refused}: {error}") from error
            return _Made([each for _, each in made], ends, reckoner.keyed())

    def _judge(self, stage: Stage, job: str, made: _Made) -> None:
        self._tell("judging what the job has left")
        self._note(judge_transactions(self._cluster.control, job))
        written = self._cluster.ranges(self._cluster.control.topics([self._names.output]))
        seen = self._cluster.see(written, self._cluster.whose(written))
        self._note(judge_output(judged(self._names.output, made.expected, seen), self._guarantee))
        metadata = read_job(LocalStore(stage.checkpoint_dir), job).completed[-1].metadata
        if metadata is None:
            self._note(Check(STATE, Verdict.BROKEN, "the last checkpoint can't be read", ("damaged",)))
            return
        with Reckoner(self._definition, metadata, stage.checkpoint_dir / job, self._folder / "restored") as restored:
            self._note(judge_state(metadata, made.ends, made.keyed, restored.keyed()))

    def _note(self, check: Check) -> None:
        self._checks.append(check)
        self._tell(f"{check.name}: {check.verdict.value}: {check.said}")

    def _tell(self, what: str, lane: str = "drill") -> None:
        self._timeline.say(lane, what)
        self._say(what)

    def _result(self) -> DrillResult:
        done = {check.name for check in self._checks}
        rest = [
            Check.not_judged(name, "the job did not come to its end")
            for name in (TRANSACTIONS, OUTPUT, STATE)
            if name not in done
        ]
        return DrillResult(
            drill="fault",
            job=self._definition.name,
            began_ms=int(self._timeline.began * 1000),
            seconds=time.time() - self._timeline.began,
            subject=f"seed {self._plan.seed}, {self._plan.faults} faults",
            checks=(*self._checks, *rest),
            figures={"records": float(self._records), **figures_of(self._recoveries)},
            timeline=self._timeline.in_order(),
            rates=self._timeline.rates(),
            settings={
                **versions(),
                "recoveries": "; ".join(map(str, self._recoveries)),
                "seed": self._plan.seed,
                "faults": self._plan.faults,
                "records": self._records,
                "parallelism": self._plan.parallelism,
                "broker": "the drill's own" if self._broker is not None else "not the drill's own: never struck",
                "plan": "; ".join(map(str, self._faults.faults)),
            },
        )
