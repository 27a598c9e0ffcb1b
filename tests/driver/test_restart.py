"""When the driver tries again."""

import pytest

from twopc.config import RunSettings
from twopc.driver.restart import STABLE_SECONDS, RestartStrategy
from twopc.errors import ConfigurationError


def strategy(attempts: int = 5) -> RestartStrategy:
    return RestartStrategy(attempts=attempts, delay_ms=500, delay_max_ms=3_000)


def fail(restarts: RestartStrategy, *, ran: float = 1, completed: bool = True) -> float | None:
    return restarts.after_failure(ran_seconds=ran, completed_checkpoint=completed)


def test_delays_double_up_to_their_greatest() -> None:
    restarts = strategy()
    assert [fail(restarts) for _ in range(4)] == [0.5, 1.0, 2.0, 3.0]


def test_it_gives_up_after_the_allowed_restarts() -> None:
    restarts = strategy(attempts=1)
    fail(restarts)
    assert fail(restarts) is None


def test_a_stable_attempt_with_a_completed_checkpoint_starts_the_count_again() -> None:
    restarts = strategy(attempts=1)
    fail(restarts)
    assert fail(restarts, ran=STABLE_SECONDS) == 0.5


def test_an_attempt_that_completed_nothing_does_not_count_as_stable_however_long_it_ran() -> None:
    restarts = strategy(attempts=1)
    fail(restarts)
    assert fail(restarts, ran=10 * STABLE_SECONDS, completed=False) is None


def test_no_restarts_means_none() -> None:
    assert fail(strategy(attempts=0)) is None


def test_the_strategy_named_none_never_tries_again() -> None:
    assert fail(RestartStrategy.of(RunSettings(restart_strategy="none"))) is None


def test_a_fixed_delay_stays_the_same() -> None:
    restarts = RestartStrategy.of(RunSettings(restart_strategy="fixed-delay", restart_delay_ms=700))
    assert [fail(restarts) for _ in range(3)] == [0.7, 0.7, 0.7]


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="exponential-delay, fixed-delay, none"):
        RunSettings(restart_strategy="sometimes")
