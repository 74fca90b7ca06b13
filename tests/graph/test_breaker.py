"""The circuit breaker, on a clock that the test turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.breaker import Breaker, BreakerState, retry_after
from graph.errors import DependencyBusyError, DependencyDownError, DependencyFaultError


class Clock:
    """Time that stands still until it is told to pass."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fail(breaker: Breaker, error: Exception | None = None) -> None:
    with pytest.raises(type(error or DependencyDownError("", dependency="x"))), breaker.watch():
        raise error or DependencyDownError("It is gone.", dependency="x")


def test_it_opens_after_three_failures_in_a_row_and_says_why() -> None:
    breaker = Breaker("x", clock=Clock())
    fail(breaker)
    fail(breaker)
    with breaker.watch():
        pass
    fail(breaker)
    fail(breaker)
    assert breaker.state is BreakerState.CLOSED
    fail(breaker, DependencyFaultError("It speaks nonsense.", dependency="x"))
    assert breaker.state is BreakerState.OPEN
    with pytest.raises(DependencyDownError, match=r"It speaks nonsense\. \(not asked again for 5 s\)"), breaker.watch():
        pytest.fail("nothing must get through")


def test_one_trial_decides() -> None:
    clock = Clock()
    breaker = Breaker("x", failures=1, cooldown=5, clock=clock)
    fail(breaker)
    clock.now += 5
    assert breaker.state is BreakerState.HALF_OPEN
    with breaker.watch(), pytest.raises(DependencyDownError), breaker.watch():
        pytest.fail("only one trial at a time")
    assert breaker.state is BreakerState.CLOSED
    fail(breaker)
    clock.now += 5
    fail(breaker)
    assert breaker.state is BreakerState.OPEN


def test_a_cancelled_trial_leaves_room_for_the_next() -> None:
    clock = Clock()
    breaker = Breaker("x", failures=1, cooldown=5, clock=clock)
    fail(breaker)
    clock.now += 5
    with pytest.raises(KeyboardInterrupt), breaker.watch():
        raise KeyboardInterrupt
    assert breaker.state is BreakerState.HALF_OPEN
    with breaker.watch():
        pass
    assert breaker.state is BreakerState.CLOSED


def test_a_429_opens_it_for_as_long_as_it_asks() -> None:
    clock = Clock()
    breaker = Breaker("x", clock=clock)
    fail(breaker, DependencyBusyError("Wait.", dependency="x", retry_after=30))
    clock.now += 29
    assert breaker.state is BreakerState.OPEN
    clock.now += 1
    assert breaker.state is BreakerState.HALF_OPEN


@given(st.lists(st.sampled_from(["ok", "fail", "wait"]), max_size=40))
def test_it_is_open_only_after_enough_failures_and_never_for_longer_than_its_cooldown(steps: list[str]) -> None:
    clock = Clock()
    breaker = Breaker("x", failures=3, cooldown=5, clock=clock)
    in_a_row = 0
    for step in steps:
        if step == "wait":
            clock.now += 5
            assert breaker.state is not BreakerState.OPEN
        elif breaker.state is not BreakerState.OPEN:
            if step == "ok":
                with breaker.watch():
                    in_a_row = 0
            else:
                fail(breaker)
                in_a_row += 1
        assert (breaker.state is BreakerState.CLOSED) == (in_a_row < 3)


def test_retry_after_is_read_as_seconds_or_as_a_date_and_bounded() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60))
    assert retry_after({"retry-after": "7"}) == 7
    assert 55 < retry_after({"retry-after": later}) <= 60
    assert retry_after({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}) == 0
    assert retry_after({"retry-after": "999999999"}) == 3600
    assert retry_after({"retry-after": "soon"}) == retry_after({}) == 5
