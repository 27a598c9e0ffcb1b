"""The description of windows over event time, and the results that come out of them.

Times are Unix milliseconds of event time. Kinds of windows, and what belongs to them, are those of Kafka Streams.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from twopc.duration import DAY_MS, duration_ms
from twopc.errors import ConfigurationError

Duration = str | timedelta


@dataclass(frozen=True, slots=True)
class Window:
    """A window of one key, with what its records came to. `Json` writes it as an object of these three.

    The end of a tumbling or hopping window is behind it: a record of just that time belongs to the next one. The end of
    a session is the time of its last record. The end of a sliding window is the last millisecond that belongs to it.
    """

    start: int
    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class Aligned:
    """Windows of one size whose starts have one distance, from the Unix epoch on, or `offset` behind that.

    With a `timezone`, such as "Europe/Berlin", they begin when clocks there show a multiple of that distance since
    midnight: a day has 23 or 25 hours when clocks change, an hour that they show twice is two windows, and what they
    jump over begins as they do. Whole days are counted from a Monday on, and each begins once.
    """

    size: Duration
    offset: Duration | None = field(default=None, kw_only=True)
    timezone: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        positive_ms(f"the size of {self}", self.size)
        every_ms = positive_ms(f"every of {self}", self._every)
        if every_ms > self.size_ms:
            raise ConfigurationError(
                f"{self} leaves gaps between its windows, whose records would be in none: every is at most the size"
            )
        if self.offset is not None and checked_ms(f"the offset of {self}", self.offset) >= every_ms:
            raise ConfigurationError(f"{self}: an offset is less than the distance of the windows' starts")
        if self.timezone is not None:
            self._check_timezone(self.timezone, every_ms)

    @property
    def size_ms(self) -> int:
        return duration_ms(self.size)

    @property
    def every_ms(self) -> int:
        """The distance of the windows' starts."""
        return duration_ms(self._every)

    @property
    def shift_ms(self) -> int:
        return 0 if self.offset is None else duration_ms(self.offset)

    @property
    def _every(self) -> Duration:
        return self.size

    def _check_timezone(self, name: str, every_ms: int) -> None:
        # It takes a while to import, and few jobs have a timezone.
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
            raise ConfigurationError(
                f"{self}: this machine knows no timezone {name!r}: write it as in Europe/Berlin; where the system has "
                "no timezones, pip install tzdata brings them"
            ) from error
        if every_ms % DAY_MS and DAY_MS % every_ms:
            raise ConfigurationError(f"{self}: by local time windows begin at whole days, or at an even part of a day")
        if self.size_ms % every_ms:
            raise ConfigurationError(f"{self}: by local time the size is a multiple of every")

    def _named(self, *arguments: str) -> str:
        options = {"offset": self.offset, "timezone": self.timezone}
        given = (f"{name}={_written(option)}" for name, option in options.items() if option is not None)
        return f"{type(self).__name__}({', '.join((*arguments, *given))})"


@dataclass(frozen=True, slots=True)
class Tumbling(Aligned):
    """Windows of one size, one behind the other, from multiples of the size on (Unix time): `Tumbling("1m")`.

    `offset` and `timezone` are as of `Aligned`: `Tumbling("1d", timezone="Europe/Berlin")`.
    """

    def __str__(self) -> str:
        return self._named(_written(self.size))


@dataclass(frozen=True, slots=True)
class Hopping(Aligned):
    """Windows of one size that begin at multiples of `every`, and overlap: `Hopping("5m", every="1m")`.

    `offset` and `timezone` are as of `Aligned`.
    """

    every: Duration

    @property
    def _every(self) -> Duration:
        return self.every

    def __str__(self) -> str:
        return self._named(_written(self.size), f"every={_written(self.every)}")


@dataclass(frozen=True, slots=True)
class Session:
    """Records of a key at most `gap` apart are one session: `Session(gap="30s")`. A record between two makes one of
    them, as long as both are open.
    """

    gap: Duration

    def __post_init__(self) -> None:
        positive_ms(f"the gap of {self}", self.gap)

    @property
    def gap_ms(self) -> int:
        return duration_ms(self.gap)

    def __str__(self) -> str:
        return f"Session(gap={_written(self.gap)})"


@dataclass(frozen=True, slots=True)
class Sliding:
    """For each record of a key those at most `size` before it, and those at most that far behind it: `Sliding("1m")`.

    A record at t is the last of the window from t - size to t, and has just left the one from t + 1 to t + 1 + size,
    which there is if another record is in it. Both ends belong to a window. Kafka Streams' SlidingWindows (KIP-450).
    """

    size: Duration

    def __post_init__(self) -> None:
        positive_ms(f"the size of {self}", self.size)

    @property
    def size_ms(self) -> int:
        return duration_ms(self.size)

    def __str__(self) -> str:
        return f"Sliding({_written(self.size)})"


Windows = Tumbling | Hopping | Session | Sliding


def positive_ms(what: str, written: Any) -> int:
    """Return a duration in milliseconds; refuse one of nothing."""
    duration = checked_ms(what, written)
    if duration == 0:
        raise ConfigurationError(f"{what} must be longer than nothing")
    return duration


def checked_ms(what: str, written: Any) -> int:
    """Return a duration in milliseconds; refuse what is none."""
    try:
        return duration_ms(written)
    except ValueError as error:
        raise ConfigurationError(f"{what}: {error}") from error


def _written(duration: Any) -> str:
    return repr(str(duration) if isinstance(duration, timedelta) else duration)
