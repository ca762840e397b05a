"""Tests that pops and acknowledgements are still in effect after a crash."""

import errno

import pytest

from rocketmq_broker.server.popping import HandleExpired, check_points
from rocketmq_broker.store import StoreUnwritable
from rocketmq_broker.testing import RocketMQ
from tests.component.server.popping.conftest import Pops, Send, bodies


async def crash(rocketmq: RocketMQ) -> None:
    await rocketmq.crash(power=True)
    await rocketmq.restart()


async def test_an_acknowledged_message_does_not_come_again_after_a_crash(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", "2", "3")
    messages = await pops().pop("credits", "orders", invisible_ms=10_000)
    for message in messages[:2]:
        await pops().ack("credits", "orders", message.handle)
    await crash(rocketmq)
    assert pops().check_points.hidden.count == 1
    assert await pops().pop("credits", "orders") == []
    await rocketmq.advance(seconds=11)
    assert bodies(await pops().pop("credits", "orders")) == ["3"]


async def test_a_dead_letter_does_not_come_again_after_a_crash(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1")
    (message,) = await pops().pop("credits", "orders", invisible_ms=10_000)
    await pops().to_dead_letters("credits", "orders", message.handle)
    await crash(rocketmq)
    await rocketmq.advance(seconds=11)
    assert await pops().pop("credits", "orders") == []


async def test_a_handle_of_before_the_crash_is_good(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", "2")
    first, second = await pops().pop("credits", "orders", invisible_ms=10_000)
    renewed = await pops().change_invisible_time("credits", "orders", second.handle, 60_000)
    await crash(rocketmq)
    await pops().ack("credits", "orders", first.handle)
    with pytest.raises(HandleExpired):
        await pops().ack("credits", "orders", second.handle)
    await rocketmq.advance(seconds=30)
    await pops().ack("credits", "orders", renewed)
    await rocketmq.advance(seconds=60)
    assert await pops().pop("credits", "orders") == []


async def test_what_was_revived_before_the_crash_comes_once(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1")
    await pops().pop("credits", "orders", invisible_ms=10_000)
    await rocketmq.advance(seconds=11)
    await crash(rocketmq)
    (again,) = await pops().pop("credits", "orders", invisible_ms=10_000)
    await pops().ack("credits", "orders", again.handle)
    await crash(rocketmq)
    await rocketmq.advance(seconds=20)
    assert await pops().pop("credits", "orders") == []


async def test_a_queue_is_still_locked_after_a_crash(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", "2", "3")
    first, second = await pops().pop("credits", "orders", fifo=True, max_messages=2, invisible_ms=10_000)
    await pops().ack("credits", "orders", first.handle)
    await crash(rocketmq)
    assert await pops().pop("credits", "orders", fifo=True) == []
    await pops().ack("credits", "orders", second.handle)
    await crash(rocketmq)
    assert bodies(await pops().pop("credits", "orders", fifo=True)) == ["3"]


async def test_a_group_that_began_at_the_end_misses_nothing_by_a_crash(
    rocketmq: RocketMQ, pops: Pops, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send("before")
    monkeypatch.setattr(pops()._next.young_queues, "_max_bytes", 0)
    assert await pops().pop("credits", "orders") == []
    await send("after")
    await crash(rocketmq)
    monkeypatch.setattr(pops()._next.young_queues, "_max_bytes", 0)
    assert bodies(await pops().pop("credits", "orders")) == ["after"]


async def test_a_start_long_after_reads_only_what_hides_a_message(rocketmq: RocketMQ, pops: Pops, send: Send) -> None:
    await send("1", "2", "3")
    first, *others = await pops().pop("credits", "orders", invisible_ms=3_600_000)
    for message in others:
        await pops().ack("credits", "orders", message.handle)
    await rocketmq.advance(minutes=2)
    assert pops().check_points._needed_from == 0
    await pops().ack("credits", "orders", first.handle)
    await rocketmq.advance(minutes=2)
    await crash(rocketmq)
    assert pops().check_points._needed_from == 4
    assert await pops().pop("credits", "orders") == []


async def test_an_old_check_point_is_written_again(
    rocketmq: RocketMQ, pops: Pops, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_points, "MAX_ENTRIES_KEPT", 3)
    await send("old", "2", "3", "4", "5")
    old, *others = await pops().pop("credits", "orders", invisible_ms=3_600_000)
    for message in others:
        await pops().ack("credits", "orders", message.handle)
    await rocketmq.advance(minutes=2)
    assert pops().check_points._needed_from == 5
    await crash(rocketmq)
    await rocketmq.advance(minutes=50)
    assert await pops().pop("credits", "orders") == []
    await pops().ack("credits", "orders", old.handle)


def refuse_one_sync(rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = rocketmq._disk

    def sync(file: int) -> None:
        monkeypatch.setattr(disk, "sync", disk.files.sync)
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(disk, "sync", sync)


async def test_a_pop_whose_entry_the_disk_refuses_hides_nothing(
    rocketmq: RocketMQ, pops: Pops, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send("1")
    await pops().pop("shipping", "orders")  # the pop log's topic is made by the first pop
    refuse_one_sync(rocketmq, monkeypatch)
    with pytest.raises(StoreUnwritable):
        await pops().pop("credits", "orders")
    assert bodies(await pops().pop("credits", "orders")) == ["1"]


async def test_an_acknowledgement_that_the_disk_refuses_does_not_count(
    rocketmq: RocketMQ, pops: Pops, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send("1")
    (message,) = await pops().pop("credits", "orders", invisible_ms=10_000)
    refuse_one_sync(rocketmq, monkeypatch)
    with pytest.raises(StoreUnwritable):
        await pops().ack("credits", "orders", message.handle)
    await rocketmq.advance(seconds=11)
    assert bodies(await pops().pop("credits", "orders")) == ["1"]
