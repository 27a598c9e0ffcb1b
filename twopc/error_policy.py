"""The policies for a record that can't be decoded or encoded, or on which a function raises, as data.

A policy belongs to a source, and goes with its records through all of the job. It is about the record at fault only:
no record before or behind it in its batch is lost, doubled, or given to a function again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from twopc.errors import ConfigurationError

if TYPE_CHECKING:
    from twopc.record import Batch, RecordError
    from twopc.sink import Sink

WINDOW = 10_000
"""Of how many of the latest records `most` is a part."""


class ErrorPolicy:
    """`most` is the greatest part of the last 10,000 records of a subtask that may go wrong; None for any."""

    most: float | None = None

    @property
    def allowed(self) -> int | None:
        """How many of the last 10,000 records may go wrong; None for any number."""
        # In decimals: 0.0003 of 10,000 is 3 to whoever writes it, and less than that in binary.
        return None if self.most is None else int(Decimal(str(self.most)) * WINDOW)

    @property
    def goes_on(self) -> bool:
        """Whether the job goes on behind the record."""
        return True

    @property
    def sink_id(self) -> str | None:
        """The operator id of the sink that the record is written to; None for none."""
        return None

    def check_beside(self, other: ErrorPolicy) -> None:
        """Raise ConfigurationError if another policy with the same sink can't stand beside this one."""

    def dead_letter_sink(self, sinks: Iterable[Sink]) -> Sink | None:
        """Return the sink that such records are written to, in a job with these sinks; None for none."""
        return None

    def dead_letter(self, job: str, error: RecordError, sink: Sink) -> Batch:
        """Return what is written to that sink in the place of a record; it must be possible."""
        raise NotImplementedError(f"{type(self).__name__} writes nothing")


@dataclass(frozen=True, slots=True)
class Fail(ErrorPolicy):
    """The job ends with an error that names the record; started again, it begins with it again. The default."""

    @property
    def goes_on(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Skip(ErrorPolicy):
    """The record is left out and counted, and the first of each kind is logged.

    Where more than `most` of the last 10,000 records of a subtask went wrong (0.01: more than 100), the job ends. A
    record that fails several times counts once.
    """

    most: float | None = None

    def __post_init__(self) -> None:
        checked_most(self)


def tolerant(policies: Mapping[str, ErrorPolicy]) -> frozenset[str]:
    """Return the sources behind whose records at fault the job goes on."""
    return frozenset(source for source, policy in policies.items() if policy.goes_on)


def checked_most(policy: ErrorPolicy) -> None:
    """Raise ConfigurationError unless the limit of a policy is a part of one."""
    most = policy.most
    if most is not None and (isinstance(most, bool) or not isinstance(most, int | float) or not 0 <= most < 1):
        raise ConfigurationError(
            f"most of {type(policy).__name__} is the part of the last {WINDOW:,} records that may go wrong, such as "
            f"0.01, not {most!r}"
        )


def checked_policy(job: str, policy: ErrorPolicy) -> ErrorPolicy:
    """Return what was given as on_error; raise ConfigurationError if it is no policy."""
    if not isinstance(policy, ErrorPolicy):
        raise ConfigurationError(f"job {job!r}: on_error is Fail(), Skip() or DeadLetter('topic'), not {policy!r}")
    return policy
