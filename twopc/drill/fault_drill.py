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

from twopc import events
from twopc.checkpoints.catalog import read_job
from twopc.config import RunSettings
from twopc.drill.broker import create_scratch_topic, delete_scratch_group, delete_scratch_topic
from twopc.drill.expected_output import ExpectedOutput
from twopc.drill.fault_checks import (
    STATE,
    TRANSACTIONS,
    KeyedStates,
    judge_end,
    judge_faults,
    judge_output,
    judge_state,
    judge_transactions,
)
from twopc.drill.fault_drill_plan import FaultDrillPlan
from twopc.drill.fault_injector import FaultInjector
from twopc.drill.fault_run import play
from twopc.drill.faults import FaultPlan, Kind, choices, draw
from twopc.drill.folder import KAFKA, drill_folder
from twopc.drill.job import DrillJob
from twopc.drill.output_comparison import Ends
from twopc.drill.own_broker import OwnBroker
from twopc.drill.own_topics import ends_of_records
from twopc.drill.real_output import OUTPUT
from twopc.drill.recovery import Recovery, RecoveryTimes, figures_of, judge_recovery, reads_again, reads_of
from twopc.drill.scratch_job import Names
from twopc.drill.supervisor import Supervisor
from twopc.drill.throttled_job import READS, drilled_definition, throttled_job
from twopc.drill.timeline import Timeline
from twopc.drill.verdict import Check, CheckVerdict, DrillResult, versions
from twopc.errors import ConfigurationError, Unavailable, UserCodeError
from twopc.kafka.connectors import KafkaConnectors, cluster_of, refuse_broadcasts
from twopc.kafka.input.topic_reader import whole
from twopc.kafka.positions.partition_position import offsets_of
from twopc.kafka.sink import DeliveryGuarantee
from twopc.loader.job_loader import load_job
from twopc.scratch.job_file import write_job_file
from twopc.storage.local import LocalStore
from twopc.verify.findings import Verdict
from twopc.verify.judge import verdict_on
from twopc.verify.replay import ReplayedRecord
from twopc.verify.transaction_lookup import TopicLog

SECONDS_A_CHECKPOINT = 1.5
"""More than one takes on a busy machine: once all faults have happened, the rest is read as fast as it goes."""
INTERVALS_A_CHECKPOINT = 1.5

OnEvent = Callable[[events.Event], None]


def fault_drill(
    plan: FaultDrillPlan, settings: RunSettings, *, say: Callable[[str], None], on_event: OnEvent | None = None
) -> DrillResult:
    """Drill, and leave nothing behind but the result. Raises what kept the drill from running.

    Without `bootstrap_servers` in the settings a local Kafka is started, and may be struck; brokers that are not the
    drill's own never are.
    """
    with ExitStack() as closing:
        folder = closing.enter_context(drill_folder(plan.scratch_dir))
        KafkaConnectors.only(definition := load_job(plan.job_file), "drilled")
        refuse_broadcasts(definition, "drilled")
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
class _ExpectedResult:
    """The output of the whole input, and where the input ends."""

    expected: list[ReplayedRecord]
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
        self._names = Names.fresh()
        real = load_job(plan.job_file)
        real = real if broker is not None else real.with_access(plan.access)
        self._name = real.name
        self._real = KafkaConnectors.of(real)
        definition = drilled_definition(real, self._names.name, own_broker=broker is not None)
        self._job = DrillJob.of(definition, settings, plan.access if broker is None else {})
        sinks = self._job.connectors.sinks.values()
        self._cluster = next(iter(self._job.outputs.values()))
        transactional = any(sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE for sink in sinks)
        kinds = choices(own_broker=broker is not None, transactional=transactional)
        self._faults: FaultPlan = draw(plan.seed, plan.faults, kinds, transactional=transactional)
        if broker is not None and any(fault.kind is Kind.EXPIRE_TRANSACTION for fault in self._faults.faults):
            broker.let_transactions_expire()
        a_checkpoint = max(SECONDS_A_CHECKPOINT, INTERVALS_A_CHECKPOINT * settings.checkpoint_interval_ms / 1000)
        self._pace_seconds = a_checkpoint * (self._faults.last_checkpoint + 2)
        self._timeline = Timeline()
        self._times = RecoveryTimes()
        self._recoveries: tuple[Recovery, ...] = ()
        self._checks: list[Check] = []
        self._records = 0

    def run(self) -> DrillResult:
        with self._scratch():
            self._tell("filling the scratch input")
            self._records = self._fill()
            made = self._compute_expected("expected")
            partitions = 1 + max(end.partition for end in made.ends)
            # Those of its own the job makes itself.
            for topic in sorted(set(self._outputs) - self._job.own_topics):
                create_scratch_topic(self._cluster, topic, partitions)
            job_file = write_job_file(
                self._folder,
                throttled_job,
                self._plan.job_file,
                own_broker=self._broker is not None,
                name=self._names.name,
                rate=self._records / len(self._job.connectors.inputs) / self._plan.parallelism / self._pace_seconds,
                finish=str(self._finish),
            )
            arms = [fault.arm for fault in self._faults.faults]
            supervisor = Supervisor(self._folder, self._settings.bootstrap_servers, job_file, self._settings, arms)
            with supervisor:
                finished = self._play(supervisor)
            if finished:
                if self._job.own_topics:
                    # What the job has read of what it wrote itself is known only now.
                    made = self._compute_expected("afterwards")
                self._judge(supervisor, load_job(job_file).name, made)
        return self._result()

    @contextmanager
    def _scratch(self) -> Iterator[None]:
        """Have the scratch names on the brokers, and nothing of them afterwards."""
        # Whoever is not let in is told so before anything is created, and in words.
        with self._cluster.client() as client:
            client.topics(self._job.connectors.topics)
        try:
            yield
        finally:
            self._tell("deleting what the drill has made")
            if self._broker is None:
                with suppress(Unavailable):
                    delete_scratch_group(self._cluster, self._names.group)
                for topic in (*self._job.connectors.topics, *self._outputs):
                    with suppress(Unavailable):
                        delete_scratch_topic(self._cluster, topic)

    @property
    def _outputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(topic for sink in self._job.connectors.sinks.values() for topic in sink.outputs))

    def _fill(self) -> int:
        """Fill the scratch inputs, each with its share; return how many records they have together."""
        filled = 0
        for key, source in self._real.inputs.items():
            [topic] = self._job.connectors.sources[key].topics
            real = cluster_of(source, self._settings, self._plan.access)
            load, share = self._plan.load, len(self._real.inputs)
            filled += load.fill(self._cluster, topic, self._plan.job_file, source, real, share)
        return filled

    def _play(self, supervisor: Supervisor) -> bool:
        """Run the job to its end while the faults happen; return whether it came there."""
        with self._cluster.client() as client:
            injector = FaultInjector(
                supervisor, self._names.name, client, self._broker, lambda what: self._tell(what, "faults")
            )
            return self._inject(supervisor, injector)

    def _inject(self, supervisor: Supervisor, injector: FaultInjector) -> bool:
        faults = self._faults.faults
        finished = play(
            supervisor,
            faults,
            injector,
            self._finish,
            lambda: self._take_events(supervisor),
            pace_seconds=self._pace_seconds,
        )
        self._note(judge_end(supervisor, injector, finished=finished))
        self._note(judge_faults(injector, faults))
        again = reads_again(reads_of(self._finish.with_name(READS)))
        self._recoveries = self._times.of(injector.struck, again)
        if self._plan.max_recovery_seconds is not None:
            self._note(judge_recovery(self._recoveries, self._plan.max_recovery_seconds))
        return finished

    @property
    def _finish(self) -> Path:
        """The file that tells the job to read as fast as it can."""
        return self._folder / "finish"

    def _take_events(self, supervisor: Supervisor) -> None:
        for event in supervisor.new_events():
            self._times.note(event)
            self._timeline.note(event)
            if self._on_event is not None:
                self._on_event(event)

    def _compute_expected(self, work: str) -> _ExpectedResult:
        """Work out what the input makes; raise ConfigurationError where the job can't take it, before it tries."""
        self._tell("working out what the output must be")
        read = self._job.input_ranges()
        starts: Ends = {partition: first for partition, (first, _) in read.items()}
        ends: Ends = {partition: end for partition, (_, end) in read.items()}
        definition, ahead_ms = self._job.definition, self._settings.max_time_ahead_ms
        with ExpectedOutput(definition, None, self._folder, self._folder / work, ahead_ms) as expected_output:
            try:
                made = list(expected_output.compute(self._job.inputs, starts, ends))
            except UserCodeError as error:
                raise ConfigurationError(f"{self._plan.load.refused}: {error}") from error
            return _ExpectedResult(made, ends, expected_output.keyed())

    def _judge(self, supervisor: Supervisor, job: str, made: _ExpectedResult) -> None:
        self._tell("judging what the job has left")
        with self._cluster.client() as client:
            self._note(judge_transactions(client, job))
        verdicts = {topic: self._verdict(topic, made) for topic in self._outputs if self._job.is_judged_topic(topic)}
        self._note(judge_output(verdicts, self._job))
        metadata = read_job(LocalStore(supervisor.checkpoint_dir), job).completed[-1].metadata
        if metadata is None:
            self._note(Check(STATE, CheckVerdict.BROKEN, "the last checkpoint can't be read", ("damaged",)))
            return
        definition, ahead_ms = self._job.definition, self._settings.max_time_ahead_ms
        work = self._folder / "restored"
        with ExpectedOutput(definition, metadata, supervisor.checkpoint_dir / job, work, ahead_ms) as restored:
            ends = ends_of_records(self._job, offsets_of(metadata.positions), made.ends)
            self._note(judge_state(metadata, ends, made.keyed, restored.keyed()))

    def _verdict(self, topic: str, made: _ExpectedResult) -> Verdict:
        log = TopicLog(self._cluster)
        ranges = whole(self._cluster, [topic])
        return verdict_on(
            topic,
            (record.expected for record in made.expected if record.topic == topic),
            log.see(ranges, log.lookup(ranges)),
        )

    def _note(self, check: Check) -> None:
        self._checks.append(check)
        self._tell(f"{check.name}: {check.verdict.value}: {check.text}")

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
            job=self._name,
            began_ms=int(self._timeline.began * 1000),
            seconds=time.time() - self._timeline.began,
            subject=f"seed {self._plan.seed}, {self._plan.faults} faults",
            checks=(*self._checks, *rest),
            figures={"records": float(self._records), **figures_of(self._recoveries)},
            timeline=self._timeline.in_order(),
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
