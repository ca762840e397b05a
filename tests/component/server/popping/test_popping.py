"""Tests of pops, acknowledgements, and messages that are not acknowledged."""

import asyncio
from random import Random
from typing import Any

import pytest

from rocketmq_broker.client import Message, Producer
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.popping import HandleExpired, IllegalHandle, PoppedMessage, TooManyPops
from rocketmq_broker.server.popping.hidden_messages import CheckPoint
from rocketmq_broker.server.popping.pop_log import PopEntry
from rocketmq_broker.testing import RocketMQ
from tests.component.server.popping.conftest import Pops, Send, bodies


async def pop(pops: Pops, **changes: Any) -> list[PoppedMessage]:
    return await pops().pop("credits", "orders", **{"invisible_ms": 10_000, **changes})


async def test_a_popped_message_is_hidden_from_the_rest_of_its_group(pops: Pops, send: Send) -> None:
    await send("1", "2", "3")
    assert bodies(await pop(pops, max_messages=2)) == ["1", "2"]
    assert bodies(await pop(pops)) == ["3"]
    assert await pop(pops) == []
    assert bodies(await pops().pop("shipping", "orders")) == ["1", "2", "3"]


async def test_a_pop_looks_into_all_queues_or_into_one(pops: Pops, send: Send) -> None:
    await send("1", queue_id=0)
    await send("2", queue_id=1)
    assert bodies(await pop(pops, queue_id=1)) == ["2"]
    await send("3", queue_id=1)
    assert sorted(bodies(await pop(pops))) == ["1", "3"]


async def test_a_message_acknowledged_in_time_and_no_other_does_not_come_again(
    rocketmq: RocketMQ, pops: Pops, send: Send
) -> None:
    await send("1", "2")
    first, second = await pop(pops)
    await pops().ack("credits", "orders", first.handle)
    await rocketmq.advance(seconds=11)
    assert bodies(await pop(pops)) == ["2"]
    with pytest.raises(HandleExpired, match="has ended"):
        await pops().ack("credits", "orders", second.handle)


async def test_a_message_that_is_not_acknowledged_comes_again_as_the_next_attempt(
    rocketmq: RocketMQ, pops: Pops, send: Send
) -> None:
    await send("1")
    (first,) = await pop(pops)
    await rocketmq.advance(seconds=9)
    assert await pop(pops) == []
    await rocketmq.advance(seconds=2)
    (again,) = await pop(pops)
    assert (first.attempt, again.attempt, bodies([again])) == (1, 2, ["1"])
    assert decode_record(again.record).topic == b"%RETRY%credits_orders"
    await pops().ack("credits", "orders", again.handle)
    await rocketmq.advance(seconds=11)
    assert await pop(pops) == []


async def test_after_the_last_attempt_a_message_is_a_dead_letter(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1")
    attempts = 0
    while await pop(pops):
        attempts += 1
        await rocketmq.advance(seconds=11)
    await rocketmq.settle()
    (letter,) = await rocketmq.messages("%DLQ%credits")
    assert (attempts, letter.body) == (17, b"1")
    assert letter.properties["RETRY_TOPIC"] == "orders"


async def test_a_consumer_can_give_a_message_up(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1")
    (message,) = await pop(pops)
    await pops().to_dead_letters("credits", "orders", message.handle)
    await rocketmq.advance(seconds=11)
    assert await pop(pops) == []
    assert [letter.body for letter in await rocketmq.messages("%DLQ%credits")] == [b"1"]


async def test_a_handle_of_another_broker_is_refused(pops: Pops, send: Send) -> None:
    await send("1")
    (message,) = await pop(pops)
    parts = message.handle.split(" ")
    with pytest.raises(IllegalHandle, match="belongs to broker elsewhere"):
        await pops().ack("credits", "orders", " ".join([*parts[:5], "elsewhere", *parts[6:]]))


async def test_the_invisible_time_can_be_changed(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("longer", "shorter")
    longer, shorter = await pop(pops)
    renewed = await pops().change_invisible_time("credits", "orders", longer.handle, 60_000)
    await pops().change_invisible_time("credits", "orders", shorter.handle, 1_000)
    await rocketmq.advance(seconds=2)
    assert bodies(await pop(pops)) == ["shorter"]
    with pytest.raises(HandleExpired, match="the handle is out of date"):
        await pops().ack("credits", "orders", longer.handle)
    await rocketmq.advance(seconds=30)
    await pops().ack("credits", "orders", renewed)


async def test_a_pop_waits_for_a_message_that_is_not_acknowledged(pops: Pops, send: Send) -> None:
    await send("1")
    await pop(pops)
    assert bodies(await pop(pops, poll_ms=30_000)) == ["1"]


async def test_nobody_gets_the_messages_of_a_pop_that_was_cancelled(pops: Pops, send: Send) -> None:
    waiting = asyncio.create_task(pop(pops, poll_ms=30_000))
    await asyncio.sleep(1)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert pops().waiting.count == 0
    await send("1")
    assert bodies(await pop(pops)) == ["1"]


async def test_each_waiting_pop_of_a_group_gets_a_message_of_its_own(pops: Pops, send: Send) -> None:
    waiting = [asyncio.create_task(pop(pops, poll_ms=30_000, max_messages=1)) for _ in range(3)]
    await asyncio.sleep(1)
    await send("1", "2", "3")
    assert [bodies(await one) for one in waiting] == [["1"], ["2"], ["3"]]


async def test_only_wanted_messages_come(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", tags="paid")
    await send("2", tags="placed")
    assert bodies(await pop(pops, expression="placed")) == ["2"]
    await rocketmq.advance(seconds=11)
    assert bodies(await pop(pops, expression="placed")) == ["2"]


async def test_a_waiting_pop_looks_behind_many_messages_that_it_does_not_want(producer: Producer, pops: Pops, send: Send) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    for _ in range(2):
        await producer.send_batch([Message.of("orders", "0", tags="placed") for _ in range(900)], queue)
    await send("1", tags="paid")
    assert bodies(await pop(pops, expression="paid", poll_ms=5_000)) == ["1"]


async def test_an_answer_has_no_more_bytes_than_that_of_a_pull(pops: Pops, send: Send) -> None:
    chance = Random(1)
    for queue_id in 0, 1:
        await send(*[chance.randbytes(200_000).hex() for _ in range(3)], queue_id=queue_id)
    sizes = [[len(message.record) for message in await pop(pops)] for _ in range(7)]
    assert sum(map(len, sizes)) == 6
    assert max(map(len, sizes)) <= 2


async def test_the_messages_of_an_orderly_pop_lock_their_queue(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", "2", "3", queue_id=0)
    await send("other queue", queue_id=1)
    first, second = await pop(pops, fifo=True, queue_id=0, max_messages=2)
    assert bodies(await pop(pops, fifo=True)) == ["other queue"]
    await pops().ack("credits", "orders", first.handle)
    assert await pop(pops, fifo=True) == []
    waiting = asyncio.create_task(pop(pops, fifo=True, poll_ms=5_000))
    await asyncio.sleep(1)
    await pops().ack("credits", "orders", second.handle)
    assert bodies(await waiting) == ["3"]


async def test_an_orderly_pop_gets_in_order_what_was_not_acknowledged(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", "2", "3", queue_id=0)
    first, *_ = await pop(pops, fifo=True, queue_id=0)
    await pops().ack("credits", "orders", first.handle)
    await rocketmq.advance(seconds=11)
    again = await pop(pops, fifo=True, queue_id=0)
    assert [(message.attempt, body) for message, body in zip(again, bodies(again), strict=True)] == [(2, "2"), (2, "3")]
    for message in again:
        await pops().ack("credits", "orders", message.handle)
    await rocketmq.advance(seconds=11)
    assert await pop(pops, fifo=True, queue_id=0) == []


async def test_a_waiting_orderly_pop_gets_what_becomes_visible(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", queue_id=0)
    await pop(pops, fifo=True, queue_id=0)
    waiting = asyncio.create_task(pop(pops, fifo=True, queue_id=0, poll_ms=30_000))
    await rocketmq.advance(seconds=11)
    assert waiting.done()
    assert bodies(await waiting) == ["1"]


async def test_the_same_attempt_of_an_orderly_pop_gets_its_messages_again(pops: Pops, send: Send) -> None:
    await send("1", "2", queue_id=0)
    once = await pop(pops, fifo=True, queue_id=0, attempt_id="a")
    again = await pop(pops, fifo=True, queue_id=0, attempt_id="a")
    assert bodies(once) == bodies(again) == ["1", "2"]
    assert [message.attempt for message in again] == [1, 1]
    assert await pop(pops, fifo=True, queue_id=0, attempt_id="b") == []


async def test_the_change_of_one_message_of_an_orderly_pop_holds_its_queue(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", "2", queue_id=0)
    first, second = await pop(pops, fifo=True, queue_id=0)
    await pops().change_invisible_time("credits", "orders", first.handle, 1_000)
    renewed = await pops().change_invisible_time("credits", "orders", second.handle, 30_000)
    await rocketmq.advance(seconds=20)
    assert await pop(pops, fifo=True, queue_id=0) == []
    await pops().ack("credits", "orders", renewed)
    assert bodies(await pop(pops, fifo=True, queue_id=0)) == ["1"]


async def test_a_group_whose_offset_is_set_back_gets_hidden_messages_no_second_time(pops: Pops, send: Send) -> None:
    await send("1", "2")
    first, _ = await pop(pops)
    await pops().ack("credits", "orders", first.handle)
    pops().check_points._offsets.commit("credits", "orders", 0, 0)
    assert bodies(await pop(pops)) == ["1"]


@pytest.mark.parametrize(
    ("group", "topic", "changes", "code"),
    [
        ("credits", "no-such-topic", {}, ResponseCode.TOPIC_NOT_EXIST),
        ("credits", "RMQ_SYS_TRANS_HALF_TOPIC", {}, ResponseCode.NO_PERMISSION),
        ("credits", "rmq_sys_POP_LOG_TOPIC", {}, ResponseCode.NO_PERMISSION),
        ("credits", "SCHEDULE_TOPIC_XXXX", {}, ResponseCode.NO_PERMISSION),
        ("CID_RMQ_SYS_TRANS", "orders", {}, ResponseCode.NO_PERMISSION),
        ("credits", "orders", {"queue_id": 2}, ResponseCode.SYSTEM_ERROR),
        ("credits", "orders", {"max_messages": 33}, 29),
        ("credits", "orders", {"max_messages": 0}, 29),
        ("credits", "orders", {"invisible_ms": 0}, 29),
        ("credits", "orders", {"invisible_ms": 12 * 3600 * 1000 + 1}, 29),
        ("credits", "orders", {"attempt_id": "a" * 256}, 29),
        ("credits", "orders", {"expression": "||"}, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    ],
)
async def test_a_pop_that_is_not_possible_is_refused(
    pops: Pops, send: Send, group: str, topic: str, changes: dict[str, Any], code: int
) -> None:
    await send("1")
    with pytest.raises(RequestRefused) as refused:
        await pops().pop(group, topic, **changes)
    assert refused.value.code == code


@pytest.mark.parametrize("fifo", [False, True])
async def test_a_group_that_begins_at_the_end_gets_what_comes_later(
    rocketmq: RocketMQ, pops: Pops, send: Send, monkeypatch: pytest.MonkeyPatch, fifo: bool
) -> None:
    await send("before")
    monkeypatch.setattr(pops()._next.young_queues, "_max_bytes", 0)
    assert await pop(pops, fifo=fifo) == []
    await send("after")
    assert bodies(await pop(pops, fifo=fifo)) == ["after"]
    assert bodies(await pops().pop("from-the-first", "orders", begin_at_end=False)) == ["before", "after"]


async def test_a_topic_deleted_meanwhile_brings_nothing_back(
    rocketmq: RocketMQ, producer: Producer, pops: Pops, send: Send
) -> None:
    await send("1")
    await pop(pops)
    broker = rocketmq._broker._serving.context
    broker.store.forget_topic(b"orders")
    await rocketmq.advance(seconds=11)
    assert pops().check_points.hidden.count == 0
    await producer.send(Message.of("orders", "2"))


def hoard(pops: Pops, count: int, group: str = "hoarders", topic: str = "orders") -> None:
    """Makes a group pop `count` messages of some queues without acknowledging them."""
    hidden = pops().check_points.hidden
    for start in range(0, count, 10_000):
        offsets = list(range(100, 100 + min(10_000, count - start)))
        entry = PopEntry(group, topic, 1000 + start // 10_000, 0, offsets[-1] + 1, offsets, 1 << 42, 12 * 3600 * 1000)
        hidden.hide(CheckPoint(entry, -1 - hidden.count))


async def test_what_one_group_does_not_acknowledge_stops_no_other_group(
    pops: Pops, send: Send, caplog: pytest.LogCaptureFixture
) -> None:
    await send("1", "2")
    hoard(pops, 500_000)
    for _ in range(2):
        with pytest.raises(TooManyPops, match="in topic orders: group hoarders has 500000, limit"):
            await pops().pop("hoarders", "orders", poll_ms=1000)
    assert bodies(await pop(pops)) == ["1", "2"]
    assert caplog.text.count("pops of group hoarders in topic orders are refused") == 1


async def test_a_group_keeps_popping_a_little_at_a_time_when_others_fill_the_broker(pops: Pops, send: Send) -> None:
    for number in range(6):
        hoard(pops, 90_000, f"hoarders-{number}")
    await send(*map(str, range(33)))
    first = await pop(pops)
    with pytest.raises(TooManyPops, match="fewer than 32"):
        await pop(pops)
    await pops().ack("credits", "orders", first[0].handle)
    assert bodies(await pop(pops)) == ["32"]


async def test_a_group_with_its_share_in_hand_waits_where_nothing_else_is_to_be_had(pops: Pops, send: Send) -> None:
    await send("1")
    await pop(pops)
    hoard(pops, 100_000, "credits")
    assert await pop(pops, poll_ms=10) == []


async def test_a_pop_is_refused_for_a_queue_of_which_its_group_has_too_much_in_hand(pops: Pops, send: Send) -> None:
    await send("1", "2")
    await send("3", queue_id=1)
    await pop(pops, queue_id=0, max_messages=1)
    entry = PopEntry("credits", "orders", 0, 1, 1, list(range(100, 10_100)), 1 << 42, 1000)
    pops().check_points.hidden.hide(CheckPoint(entry, -1))
    assert bodies(await pop(pops)) == ["3"]
    with pytest.raises(TooManyPops, match="in queue 0 of topic orders: group credits has 10001,"):
        await pop(pops)


async def test_an_orderly_group_gets_again_what_it_has_in_hand_however_much_that_is(
    rocketmq: RocketMQ, pops: Pops, send: Send
) -> None:
    await send("1", "2")
    assert bodies(await pop(pops, fifo=True)) == ["1", "2"]
    hoard(pops, 100_000, "credits")
    await rocketmq.advance(seconds=11)
    assert bodies(await pop(pops, fifo=True)) == ["1", "2"]


@pytest.mark.parametrize("offset", [-1, 1, 2, 1 << 40])
async def test_a_handle_of_a_message_that_no_pop_gave_is_refused(pops: Pops, send: Send, offset: int) -> None:
    await send("1", "2")
    (message,) = await pop(pops, max_messages=1)
    made_up = f"{message.handle.rpartition(' ')[0]} {offset}"
    for work in (
        pops().ack("credits", "orders", made_up),
        pops().change_invisible_time("credits", "orders", made_up, 0),
        pops().to_dead_letters("credits", "orders", made_up),
    ):
        with pytest.raises(HandleExpired, match="was not popped by group credits"):
            await work
    assert bodies(await pop(pops)) == ["2"]


async def test_a_message_of_an_orderly_pop_is_acknowledged_twice_while_another_one_locks_the_queue(
    pops: Pops, send: Send
) -> None:
    await send("1", "2")
    _, second = await pop(pops, fifo=True)
    for _ in range(2):
        await pops().ack("credits", "orders", second.handle)


async def test_an_attempt_of_an_orderly_pop_outlives_a_change_of_the_invisible_time(pops: Pops, send: Send) -> None:
    await send("1")
    (message,) = await pop(pops, fifo=True, attempt_id="attempt")
    await pops().change_invisible_time("credits", "orders", message.handle, 20_000)
    assert await pop(pops, fifo=True, attempt_id="another") == []
    (again,) = await pop(pops, fifo=True, attempt_id="attempt")
    assert again.attempt == 1


async def test_a_group_and_a_topic_may_both_have_the_longest_names(rocketmq: RocketMQ, producer: Producer, pops: Pops) -> None:
    topic, groups = "t" * 127, ["g" * 120, "g" * 119 + "h"]
    await producer.create_topic(topic, 1)
    await producer.send(Message.of(topic, "1"))
    for group in groups:
        assert bodies(await pops().pop(group, topic, invisible_ms=10_000)) == ["1"]
    await rocketmq.advance(seconds=11)
    for group in groups:
        (again,) = await pops().pop(group, topic)
        assert again.attempt == 2
        await pops().ack(group, topic, again.handle)
    assert not pops().check_points.hidden.count
