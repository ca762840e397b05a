"""Tests that a test in which `advance` skips hours and days has the same results as a run that plays each second."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message, MessageExt
from rocketmq_broker.server.statistics.message_flows import TOPIC_PUT_NUMS
from rocketmq_broker.testing import RocketMQ, rocketmq
from tests.unit.testing.listeners import UNKNOWN, Transactions, order

SEGMENT = 64 << 10
SETTINGS: Mapping[str, object] = {
    "mapedFileSizeCommitLog": SEGMENT, "fileReservedTime": 2, "deleteWhen": "00;03;06;09;12;15;18;21", "transactionCheckMax": 3,
}  # fmt: skip


@dataclass
class Seen:
    """Everything that a test can observe in a run."""

    story: str = ""
    commit_log: bytes = b""
    messages: list[str] = field(default_factory=list)
    consumed: list[tuple[float, bytes, int]] = field(default_factory=list)
    timers: list[float] = field(default_factory=list)
    checks: list[int] = field(default_factory=list)
    peers: list[str] = field(default_factory=list)
    turns: int = field(default=0, compare=False)


async def half_a_day_with_everything() -> Seen:
    seen = Seen()
    async with RocketMQ(SETTINGS, seed=7) as world:
        began_s = world.time.elapsed_s

        def now_s() -> float:
            return round(world.time.elapsed_s - began_s, 3)

        def consume(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            seen.consumed += [(now_s(), message.body[:20], message.reconsume_times) for message in messages]
            is_bad = messages[0].body.startswith(b"never")
            return ConsumeStatus.RECONSUME_LATER if is_bad else ConsumeStatus.CONSUME_SUCCESS

        async def note_times() -> None:
            for pause_s in (3600.0, 5 * 3600.0, 90.0):
                await asyncio.sleep(pause_s)
                seen.timers.append(now_s())

        listeners = Transactions(), Transactions(UNKNOWN, UNKNOWN)
        settled, hanging = [await world.transaction_producer(f"p{n}", listener) for n, listener in enumerate(listeners)]
        for topic in ("orders", "steps"):
            await settled.create_topic(topic, 1)
        await world.consumer("credit", "orders", consume, max_reconsume_times=4)
        await world.consumer("in-order", "steps", consume, orderly=True)
        timers = asyncio.create_task(note_times())
        world.lose_next_decision()
        await settled.send_message_in_transaction(order("order-1"))
        await hanging.send_message_in_transaction(order("order-2"))
        await settled.send(Message.of("orders", b"never"))
        await settled.send(Message.of("orders", b"in two hours", delay_time_level=18))
        for number in range(20):
            await settled.send(Message.of("steps", b"%02d" % number + bytes(8000)))
        turns = world.time.turns
        await world.advance(hours=9)
        seen.turns = world.time.turns - turns
        # On arrival everybody is still there, at once.
        await settled.send(Message.of("orders", b"at last"))
        await settled.send(Message.of("steps", b"at last"))
        await world.settle()
        await timers
        seen.peers = sorted(connection.peer for connection in world._active_interceptor._connections)
        seen.checks = [listener.checks for listener in listeners]
        seen.story, seen.commit_log = world.story(), world.commit_log()
        for topic in ("orders", "steps", "%DLQ%credit", "TRANS_CHECK_MAX_TIME_TOPIC"):
            seen.messages += [f"{topic} {message!r}" for message in await world.messages(topic)]
    return seen


async def test_a_run_with_leaps_shows_what_one_without_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    leapt, again = [await half_a_day_with_everything() for _ in range(2)]
    assert leapt == again, "the same seed gives the same bytes"
    monkeypatch.setattr(rocketmq, "MIN_LEAP_S", math.inf)
    usual = await half_a_day_with_everything()
    assert leapt.consumed == usual.consumed
    assert leapt.timers == usual.timers == pytest.approx([3600, 6 * 3600, 6 * 3600 + 90], abs=0.01)
    assert leapt.checks == usual.checks == [1, 3]
    assert leapt.story == usual.story
    assert leapt.messages == usual.messages
    assert leapt.commit_log == usual.commit_log
    assert leapt.peers == usual.peers, "no client had to connect again"
    assert (b"in two hours", 0) in [(body, times) for _, body, times in leapt.consumed]
    assert 0 < len(leapt.commit_log) <= 2 * SEGMENT, "the segments of the first hours have expired"
    assert leapt.turns < usual.turns


async def figures_after_three_days() -> list[object]:
    async with RocketMQ(seed=7) as world:
        producer = await world.producer("p")
        await producer.send(order("order-1"))
        await producer.shutdown()
        await world.advance(hours=75)
        assert world._broker is not None
        assert world._broker._serving is not None
        statistics = world._broker._serving.context.statistics
        yesterday = statistics.put_at_midnight, statistics.put_yesterday
        return [yesterday, statistics.put_rates(), statistics.flows.report(TOPIC_PUT_NUMS, "orders")]


async def test_figures_of_the_last_day_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    leapt = await figures_after_three_days()
    monkeypatch.setattr(rocketmq, "MIN_LEAP_S", math.inf)
    assert leapt == await figures_after_three_days()
    assert leapt[0] == (1, 1)
