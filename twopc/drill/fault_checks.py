"""The checks of a fault drill's run, besides its output: its end, its faults, its transactions and its state."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence

from twopc.drill.fault_injector import FaultInjector
from twopc.drill.faults import Fault
from twopc.drill.job import DrillJob
from twopc.drill.output_comparison import Ends, TopicVerdict, check_of
from twopc.drill.real_output import ALLOWED, OUTPUT
from twopc.drill.supervisor import Supervisor
from twopc.drill.verdict import Check, CheckVerdict
from twopc.errors import CheckpointCorrupted, Fenced, Unavailable
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.positions.partition_position import offsets_of
from twopc.kafka.sink import DeliveryGuarantee
from twopc.protocol.facts import CheckpointMetadata
from twopc.state.whole_states import KeyState
from twopc.verify.findings import Verdict, merged

FINISHED, FAULTS, STATE, TRANSACTIONS = "finished", "faults", "state", "transactions"
SETTLE_SECONDS = 60.0
KeyedStates = Mapping[KeyState, bytes]

_EXPLAINED = (0, -signal.SIGKILL, Fenced.exit_code, Unavailable.exit_code, CheckpointCorrupted.exit_code)
_OPEN = frozenset(BrokerState) - {BrokerState.EMPTY, BrokerState.COMPLETE_COMMIT, BrokerState.COMPLETE_ABORT}


def unexplained(supervisor: Supervisor) -> list[str]:
    """Return the last words of each driver that ended in a way that no fault explains."""
    return [
        f"ended with {driver.exit_code}: {driver.last_words(2)}"
        for driver in supervisor.drivers
        if driver.exit_code is not None and driver.exit_code not in _EXPLAINED
    ]


def judge_end(supervisor: Supervisor, injector: FaultInjector, *, finished: bool) -> Check:
    """Whether the job lived through its faults, and every driver that ended said why."""
    words = unexplained(supervisor)
    if not finished:
        words.append("stuck: the job did not come to the end of its input")
    return Check.of(
        FINISHED,
        [*injector.findings, *words],
        held=f"the job came to its end, with {len(supervisor.drivers)} drivers and {len(supervisor.coordinators)} "
        "coordinators one after the other",
        broken="the job did not live through the faults",
    )


def judge_faults(injector: FaultInjector, planned: Sequence[Fault]) -> Check:
    """Whether everything that was planned happened: a drill without its faults proves nothing."""
    missed = [fault for fault in planned if fault not in injector.done]
    if not missed:
        return Check(FAULTS, CheckVerdict.HELD, f"all {len(planned)} faults happened", tuple(map(str, injector.done)))
    why = [injector.missed.get(each.number, f"no subtask came to {each.step.code} any more") for each in missed]
    return Check(
        FAULTS,
        CheckVerdict.MISSED,
        f"{len(missed)} of {len(planned)} faults did not strike before the job had ended: drill with more --records, a "
        "shorter --checkpoint-interval, fewer --faults, or another --seed",
        tuple(f"missed: {fault}: {reason}" for fault, reason in zip(missed, why, strict=True)),
    )


def judge_transactions(control: ControlClient, job: str) -> Check:
    """Nothing may be open in the end: it would hide what follows."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        left = [
            f"open: {name} is {state.value}"
            for name, state in control.list_transactions().items()
            if name.startswith(job) and state in _OPEN
        ]
        if not left or time.monotonic() > deadline:
            return Check.of(TRANSACTIONS, left, held="nothing is left open", broken=f"{len(left)} are left open")
        time.sleep(0.2)


def judge_output(verdicts: Mapping[str, Verdict], job: DrillJob) -> Check:
    """Whether each topic is what its sinks promise, told by what it was held against."""
    if not verdicts:
        return Check.not_judged(OUTPUT, "; ".join(job.left_out))
    allowed = {topic: ALLOWED.get(job.guarantee(topic)) for topic in verdicts}
    promised = [
        TopicVerdict(verdict, kinds) for topic, verdict in verdicts.items() if (kinds := allowed[topic]) is not None
    ]
    if not promised:
        every = merged("", list(verdicts.values()))
        counts = ", ".join(f"{count} {kind.value}" for kind, count in every.counts.items())
        text = f"the sink promises nothing ({DeliveryGuarantee.NONE.value}): {counts or 'nothing is wrong with it'}"
        return Check(OUTPUT, CheckVerdict.NOT_JUDGED, text, tuple(map(str, every.findings)))
    once = "each at least once" if any(each.allowed for each in promised) else "each exactly once and in order"
    matched = sum(each.verdict.matched for each in promised)
    left_out = [
        *job.left_out,
        *(f"{topic}, of which nothing is promised" for topic in verdicts if allowed[topic] is None),
    ]
    also = f"; not judged: {'; '.join(left_out)}" if left_out else ""
    return check_of(OUTPUT, promised, f"{matched:,} records, {once}{also}")


def judge_state(metadata: CheckpointMetadata, ends: Ends, made: KeyedStates, restored: KeyedStates) -> Check:
    """Hold the last checkpoint's positions and `restored` state against the input's ends and what it `made`."""
    findings = [
        f"position: {partition}@{offset}, but the input ends at {ends[partition]}"
        for partition, offset in offsets_of(metadata.positions).items()
        if offset != ends[partition]
    ]
    return Check.of(
        STATE,
        [*findings, *_state_findings(made, restored)],
        held="state and positions of the last checkpoint are what the input makes",
        broken="state or positions of the last checkpoint disagree with the output",
    )


def _state_findings(made: KeyedStates, restored: KeyedStates) -> Iterator[str]:
    for at in sorted(made.keys() | restored.keys()):
        if made.get(at) != restored.get(at):
            where = f"{at.state} of partition {at.partition}, key {at.key[-40:]!r}"
            yield f"state: {where}, holds {restored.get(at)!r}, and the input makes it {made.get(at)!r}"
