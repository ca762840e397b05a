"""Tests delayed messages across a restart of the broker."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.properties import DELAY_TIME_LEVEL, REAL_QUEUE_ID, REAL_TOPIC, UNIQUE_KEY, encode
from rocketmq_broker.message.record import host_bytes
from rocketmq_broker.message.sysflag import STORE_HOST_V6
from rocketmq_broker.server.schedule.delay_levels import SCHEDULE_TOPIC
from rocketmq_broker.server.schedule.delayed_delivery import MAX_AT_ONCE
from rocketmq_broker.store import MessageStore
from tests.unit.server.conftest import IDENTITY, START_MS, Desk

LEVEL, DELAY_MS = 1, 1000


def scheduled(body: bytes, properties: Mapping[str, str], *, sys_flag: int = 0, reconsume_times: int = 0) -> InnerMessage:
    """Returns a message that waits in the queue of its level."""
    place = SCHEDULE_TOPIC, LEVEL - 1
    return InnerMessage(*place, body, encode(properties), 0, sys_flag, START_MS, bytes(8), reconsume_times=reconsume_times)


def put_waiting(desk: Desk, unique_id: str | None, body: bytes = b"later", reconsume_times: int = 0) -> None:
    """Stores a message that waits for its delay, as a send or a send-back stores it."""
    own = {DELAY_TIME_LEVEL: str(LEVEL), REAL_TOPIC: "orders", REAL_QUEUE_ID: "0"}
    found = {**({UNIQUE_KEY: unique_id} if unique_id else {}), **own}
    desk.store.append(scheduled(body, found, reconsume_times=reconsume_times), desk.clock())
    desk.commit.appended()
    desk.commit.settle()


def crashed(desk: Desk, make_desk: Callable[..., Desk]) -> Desk:
    """Crashes a broker before it saved its delivery position. Returns the restarted broker."""
    desk.store.flush()
    desk.store._open_files.close()
    desk.store.lock.release()
    after = make_desk()
    after.clock.now_ms = desk.clock.now_ms
    return after


def test_what_was_delivered_before_a_crash_is_not_delivered_again(desk: Desk, make_desk: Callable[..., Desk]) -> None:
    for unique_id in ("A1", "A2"):
        put_waiting(desk, unique_id)
    desk.deliver_due(DELAY_MS)
    assert len(desk.messages("orders")) == 2
    put_waiting(desk, "A3")

    after = crashed(desk, make_desk)
    after.deliver_due(DELAY_MS)

    delivered = [record.get_property(UNIQUE_KEY) for record in after.messages("orders")]
    assert delivered == ["A1", "A2", "A3"]
    assert after.delay_offsets.get(LEVEL) == 3


@pytest.mark.parametrize("attempts", [(1, 2), (0, 0)], ids=["a further attempt", "the same once more"])
def test_a_message_that_waits_again_is_not_taken_for_its_earlier_delivery_after_a_crash(
    desk: Desk, make_desk: Callable[..., Desk], attempts: tuple[int, int]
) -> None:
    put_waiting(desk, "A1", reconsume_times=attempts[0])
    desk.deliver_due(DELAY_MS)
    put_waiting(desk, "A1", reconsume_times=attempts[1])
    desk.clock.now_ms += DELAY_MS
    put_waiting(desk, "A2")

    after = crashed(desk, make_desk)
    after.deliver_due(DELAY_MS)

    delivered = [(record.get_property(UNIQUE_KEY), record.reconsume_times) for record in after.messages("orders")]
    assert delivered == [("A1", attempts[0]), ("A1", attempts[1]), ("A2", 0)]


@pytest.mark.parametrize(
    "other",
    [{"reconsume_times": 2}, {"born_timestamp": START_MS + 1}, {"body": b"another"}, {"queue_id": 1}],
    ids=lambda other: next(iter(other)),
)
def test_what_differs_from_a_waiting_message_is_not_taken_for_its_delivery_after_a_crash(
    desk: Desk, make_desk: Callable[..., Desk], other: dict[str, Any]
) -> None:
    put_waiting(desk, "A1", reconsume_times=1)
    delivered = scheduled(b"later", {UNIQUE_KEY: "A1"}, reconsume_times=1)
    for name, value in ({"topic": b"orders"} | other).items():
        setattr(delivered, name, value)
    desk.store.append(delivered, desk.clock())
    desk.clock.now_ms += DELAY_MS
    put_waiting(desk, "A2")
    there = len(desk.messages("orders"))

    after = crashed(desk, make_desk)
    after.deliver_due(DELAY_MS)

    assert [record.get_property(UNIQUE_KEY) for record in after.messages("orders")][there:] == ["A1", "A2"]


@pytest.mark.parametrize("unique_id", ["A1", None])
def test_what_was_due_but_not_delivered_before_a_crash_is_delivered(
    desk: Desk, make_desk: Callable[..., Desk], unique_id: str | None
) -> None:
    put_waiting(desk, unique_id)
    desk.clock.now_ms += 2 * DELAY_MS
    put_waiting(desk, "A2")

    after = crashed(desk, make_desk)
    after.deliver_due(DELAY_MS)

    assert len(after.messages("orders")) == 2


def test_the_timer_is_told_when_the_next_message_is_due(desk: Desk) -> None:
    assert desk.delayed.deliver_due() is None
    put_waiting(desk, "A1")
    assert desk.delayed.deliver_due() == DELAY_MS / 1000
    desk.clock.now_ms += 300
    put_waiting(desk, "A2")
    assert desk.delayed.deliver_due() == (DELAY_MS - 300) / 1000


async def test_a_message_that_is_to_wait_wakes_the_timer(desk: Desk) -> None:
    desk.delayed.deliver_due()
    waiting = asyncio.create_task(desk.delayed.alarm.wait(None))
    put_waiting(desk, "A1")
    await waiting


def test_more_messages_than_are_delivered_in_one_go_keep_the_timer_awake(desk: Desk) -> None:
    for number in range(MAX_AT_ONCE + 1):
        put_waiting(desk, f"A{number}")
    desk.clock.now_ms += DELAY_MS

    assert desk.delayed.deliver_due() == 0
    assert desk.delayed.deliver_due() is None


async def test_what_was_delivered_and_lost_is_delivered_again_but_not_at_once(desk: Desk) -> None:
    put_waiting(desk, "A1")
    desk.clock.now_ms += DELAY_MS
    position = desk.store.flushed_position
    desk.delayed.deliver_due()
    waiting = asyncio.create_task(desk.delayed.alarm.wait(None))

    desk.store.abandon_unflushed()
    desk.delayed.take_back(position)

    await waiting
    assert desk.delay_offsets.get(LEVEL) is None
    assert desk.delayed.deliver_due() == 0.1
    desk.clock.now_ms += 100
    assert desk.delayed.deliver_due() is None
    desk.commit.settle()
    assert len(desk.messages("orders")) == 1


def test_the_offset_of_a_level_passes_a_delivered_message_once_that_is_on_the_disk(desk: Desk) -> None:
    put_waiting(desk, "A1")
    desk.clock.now_ms += DELAY_MS
    desk.delayed.deliver_due()
    assert desk.delay_offsets.get(LEVEL) in (None, 0)

    desk.commit.settle()
    desk.delayed.confirm(desk.store.flushed_position)

    assert desk.delay_offsets.get(LEVEL) == 1


async def test_a_clock_that_is_set_wakes_the_timer_which_then_sleeps_as_long_as_before(desk: Desk) -> None:
    put_waiting(desk, "A1")
    assert desk.delayed.deliver_due() == DELAY_MS / 1000
    waiting = asyncio.create_task(desk.delayed.alarm.wait(None))

    desk.delayed.clock_stepped(-3_600_000)
    desk.clock.now_ms -= 3_600_000

    await waiting
    assert desk.delayed.deliver_due() == DELAY_MS / 1000


def test_while_the_store_cannot_be_written_the_timer_does_not_spin(desk: Desk) -> None:
    put_waiting(desk, "A1")
    desk.clock.now_ms += DELAY_MS
    desk.store.refuse_writes("read-only")

    assert desk.delayed.deliver_due() == 0.1


def test_a_message_that_the_disk_refused_keeps_its_place(desk: Desk) -> None:
    for unique_id in ("A1", "A2"):
        put_waiting(desk, unique_id)
    desk.clock.now_ms += DELAY_MS
    desk.store.refuse_writes("the disk is full")
    desk.delayed.deliver_due()
    assert desk.delayed.offsets()[LEVEL] == (0, 2)


def test_a_clock_set_back_makes_no_message_wait_longer(desk: Desk) -> None:
    put_waiting(desk, "A1")
    desk.deliver_due(400)
    desk.step_clock(-3_600_000)
    desk.deliver_due()

    desk.deliver_due(DELAY_MS - 401)
    assert desk.messages("orders") == []
    desk.deliver_due(1)
    assert len(desk.messages("orders")) == 1


@pytest.mark.parametrize("later_ms", [3_600_000, 7 * 24 * 3_600_000])
def test_a_small_step_back_after_a_large_one_delivers_nothing_early(desk: Desk, later_ms: int) -> None:
    desk.deliver_due()
    desk.step_clock(-3_600_000)
    desk.deliver_due()
    desk.deliver_due(later_ms)
    put_waiting(desk, "A1")
    desk.clock.now_ms -= 10
    desk.deliver_due()

    desk.deliver_due(DELAY_MS - 1)
    assert desk.messages("orders") == []
    desk.deliver_due(11)
    assert len(desk.messages("orders")) == 1


def test_a_message_stored_later_than_now_is_delivered_at_once(desk: Desk, make_desk: Callable[..., Desk]) -> None:
    put_waiting(desk, "A1")
    after = crashed(desk, make_desk)
    after.clock.now_ms -= 3_600_000

    after.deliver_due()

    assert len(after.messages("orders")) == 1


def test_a_message_that_waited_while_the_broker_moved_from_ipv6_to_ipv4_is_delivered(make_desk: Callable[..., Desk]) -> None:
    before = make_desk()
    before.store.close()
    waiting = {DELAY_TIME_LEVEL: str(LEVEL), REAL_TOPIC: "orders", REAL_QUEUE_ID: "0"}
    store = MessageStore.open(replace(before.store.config, store_host=host_bytes("::1", 10911)))
    store.append(scheduled(b"later", waiting, sys_flag=STORE_HOST_V6), START_MS)
    store.close()
    desk = make_desk()

    desk.deliver_due(DELAY_MS)

    (record,) = desk.messages("orders")
    assert (record.body, record.store_host) == (b"later", IDENTITY.store_host)


def test_a_message_larger_than_is_allowed_by_now_is_delivered(desk: Desk, make_desk: Callable[..., Desk]) -> None:
    put_waiting(desk, "A1", b"x" * 100)
    desk.store.close()
    after = make_desk(max_message_size=10)
    after.deliver_due(DELAY_MS)
    assert len(after.messages("orders")) == 1


def test_a_message_for_a_queue_that_its_topic_has_no_more_comes_into_another(desk: Desk) -> None:
    put_waiting(desk, "A1")
    desk.topics.update(TopicConfig("orders", 4, 4))
    waiting = {DELAY_TIME_LEVEL: str(LEVEL), REAL_TOPIC: "orders", REAL_QUEUE_ID: "6"}
    desk.store.append(scheduled(b"later", waiting), START_MS)
    desk.commit.settle()

    desk.deliver_due(DELAY_MS)

    assert [len(desk.messages("orders", queue_id)) for queue_id in range(7)] == [1, 0, 1, 0, 0, 0, 0]


def test_a_message_whose_place_was_forged_is_passed_over_and_those_behind_it_are_delivered(desk: Desk) -> None:
    forged = {DELAY_TIME_LEVEL: str(LEVEL), REAL_TOPIC: SCHEDULE_TOPIC.decode(), REAL_QUEUE_ID: "0"}
    desk.store.append(scheduled(b"again and again", forged), START_MS)
    put_waiting(desk, "A1")

    desk.deliver_due(DELAY_MS)
    desk.deliver_due(DELAY_MS)

    assert len(desk.messages("orders")) == 1
    assert len(desk.messages(SCHEDULE_TOPIC.decode())) == 2


@pytest.mark.parametrize("step_ms", [4 * 24 * 3_600_000, 3_600_000, -3_600_000])
def test_each_message_waits_its_time_whatever_the_clock_is_set_to_meanwhile(desk: Desk, step_ms: int) -> None:
    put_waiting(desk, "before")
    desk.deliver_due(400)
    desk.step_clock(step_ms)
    put_waiting(desk, "meanwhile")
    desk.deliver_due(400)
    desk.step_clock(-step_ms)
    put_waiting(desk, "after")

    delivered = []
    for after_ms in (199, 1, 399, 1, 399, 1):
        desk.deliver_due(after_ms)
        delivered.append(len(desk.messages("orders")))
    assert delivered == [0, 1, 1, 2, 2, 3]


def test_messages_stored_after_others_were_lost_wait_by_the_clock_that_they_were_stored_by(desk: Desk) -> None:
    for unique_id in ("A1", "A2"):
        put_waiting(desk, unique_id)
    desk.step_clock(3_600_000)
    desk.deliver_due(0)
    position = desk.store.flushed_position
    desk.commit.is_held_up = True
    put_waiting(desk, "lost")
    desk.step_clock(3_600_000)
    desk.store.abandon_unflushed()
    desk.delayed.take_back(position)
    desk.commit.is_held_up = False
    put_waiting(desk, "A3")

    desk.deliver_due(DELAY_MS - 1)
    assert desk.messages("orders") == []
    desk.deliver_due(1)
    assert len(desk.messages("orders")) == 3
