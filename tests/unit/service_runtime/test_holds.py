"""What is held, for the log and for /healthz."""

import contextlib
import logging

import pytest

from rocketmq_broker.client import MessagesWithdrawn
from service_runtime.failing.holds import REMIND_AFTER_S, HoldCause, Holding, Holds


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def holds(clock: Clock) -> Holds:
    return Holds(now_s=clock)


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "service_runtime")


def test_nothing_is_held_at_first(holds: Holds) -> None:
    with holds.batch(32):
        assert holds.state() is None


def test_what_is_held_is_told_with_its_reason_and_since_when(holds: Holds, clock: Clock) -> None:
    with holds.batch(32) as first, holds.batch(7) as second:
        first.hold(HoldCause.OUTAGE, "Redis is away")
        clock.now_s += 60
        second.hold(HoldCause.OUTAGE, "the database is away")
        assert holds.state() == Holding(
            orders=39, batches=2, held_for_s=60, reason="the database is away", cause=HoldCause.OUTAGE
        )
    assert holds.state() is None


def test_a_suspicion_is_no_outage(holds: Holds) -> None:
    with holds.batch(1) as batch:
        batch.hold(HoldCause.SUSPICION, "its task fails")
        state = holds.state()
        assert state is not None
        assert not state.is_outage
        assert state.cause is HoldCause.SUSPICION


def test_the_log_says_when_holding_begins_and_when_it_ends_and_a_line_each_few_minutes(
    holds: Holds, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with holds.batch(32) as first:
        with holds.batch(8) as second:
            for _ in range(1_024):
                first.hold(HoldCause.OUTAGE, "Redis is away")
                second.hold(HoldCause.OUTAGE, "Redis is away")
                clock.now_s += 2 * REMIND_AFTER_S / 1_024
        first.hold(HoldCause.OUTAGE, "Redis is away")
    assert caplog.messages == [
        "32 orders are held: Redis is away. They are retried until they succeed; none is lost, and no redelivery is used up",
        "40 orders are still held after 5 min: Redis is away",
        "32 orders are still held after 10 min: Redis is away",
        "no order is held any more after 10 min: 40 orders were held, and 0 of them will be redelivered",
    ]


def test_what_is_left_when_the_consumer_stops_is_told(holds: Holds, caplog: pytest.LogCaptureFixture) -> None:
    with contextlib.suppress(MessagesWithdrawn), holds.batch(5) as batch:
        batch.hold(HoldCause.OUTAGE, "Redis is away")
        raise MessagesWithdrawn
    assert caplog.messages[-1].endswith("5 orders were held, and 5 of them will be redelivered")


def test_a_second_outage_is_told_anew(holds: Holds, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        with holds.batch(1) as batch:
            batch.hold(HoldCause.OUTAGE, "Redis is away")
            clock.now_s += 1
    assert len(caplog.messages) == 4
    assert caplog.messages[3] == "no order is held any more after 1 s: 1 orders were held, and 0 of them will be redelivered"
