"""Tests the event loop of a web page. It uses no socket, and a broker writes the same bytes on it as on any other loop."""

import asyncio
import hashlib
from collections.abc import Iterator

import pytest

from rocketmq_broker.client import Message
from rocketmq_broker.testing import NothingHappens, RocketMQ
from rocketmq_broker.testing.loops.page_loop import PageLoop
from tests.unit.testing.listeners import Transactions


async def lose_a_commit() -> tuple[str, bytes, bytes]:
    async with RocketMQ(seed=7) as rocketmq:
        producer = await rocketmq.transaction_producer("shop", Transactions())
        rocketmq.lose_next_decision()
        await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]), None)
        await rocketmq.advance(minutes=2)
        await rocketmq.crash(power=True)
        await rocketmq.restart()
        return rocketmq.story(), rocketmq.commit_log(), rocketmq.commit_log(is_synced=True)


@pytest.fixture
def loop() -> Iterator[PageLoop]:
    loop = PageLoop()
    yield loop
    loop.close()


def test_a_broker_on_it_leaves_the_bytes_of_any_other_loop(loop: PageLoop) -> None:
    story, log, synced = loop.complete(lose_a_commit())
    assert (story, log, synced) == asyncio.run(lose_a_commit())
    assert log.rstrip(b"\0") == synced.rstrip(b"\0") != b""
    assert len(hashlib.sha256(log).hexdigest()) == 64


def test_a_coroutine_completes_inside_another_running_loop_as_in_a_page() -> None:
    async def outer() -> str:
        loop = PageLoop()
        result = loop.complete(asyncio.sleep(0, "done"))
        loop.close()
        assert asyncio.get_running_loop() is not loop
        return result

    assert asyncio.run(outer()) == "done"


def test_a_function_that_waits_for_the_loop_is_called_between_two_of_its_turns(loop: PageLoop) -> None:
    order: list[str] = []

    async def noted(word: str) -> str:
        await asyncio.sleep(0)
        order.append(word)
        return word

    async def work() -> str:
        inner = await loop.call_outside(lambda: loop.complete(noted("inside")) + loop.complete(noted("after it")))
        order.append("outside is done")
        return inner

    assert loop.complete(work()) == "insideafter it"
    assert order == ["inside", "after it", "outside is done"]


def test_functions_called_outside_may_call_each_other_and_fail(loop: PageLoop) -> None:

    def fail() -> str:
        raise ValueError("no credit")

    async def outer() -> str:
        return await loop.call_outside(lambda: loop.complete(inner()))

    async def inner() -> str:
        return await loop.call_outside(fail)

    with pytest.raises(ValueError, match="no credit"):
        loop.complete(outer())
    assert loop.complete(asyncio.sleep(0, "goes on")) == "goes on"


def test_a_function_is_not_called_if_its_caller_gave_up(loop: PageLoop) -> None:
    called: list[str] = []

    async def give_up() -> None:
        loop.call_outside(lambda: called.append("first")).cancel()
        await loop.call_outside(lambda: called.append("second"))

    loop.complete(give_up())
    assert called == ["second"]


def test_a_wait_without_a_timer_raises_instead_of_freezing_the_page(loop: PageLoop) -> None:
    with pytest.raises(NothingHappens):
        loop.complete(asyncio.Event().wait())  # type: ignore[arg-type]


def test_it_has_no_sockets(loop: PageLoop) -> None:
    with pytest.raises(OSError, match="no sockets"):
        loop.add_reader(0, print)


async def test_a_file_of_the_store_can_be_read() -> None:
    async with RocketMQ(seed=7) as rocketmq:
        assert rocketmq.stored_file("no such file") is None
        assert rocketmq.stored_file("lock") is not None
        assert rocketmq.inspection().pending() == []
        assert not rocketmq.is_disk_full
        rocketmq.fill_disk()
        assert rocketmq.is_disk_full
