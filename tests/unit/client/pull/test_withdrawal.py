"""Tests the signal that ends a listener's wait, in threads and in coroutines."""

import asyncio

import pytest

from rocketmq_broker.client import ConsumeContext, MessagesWithdrawn, NotRunning
from rocketmq_broker.client.pull.withdrawal import Withdrawal
from tests.unit.client.messages import QUEUE


async def test_waiting_ends_as_soon_as_it_is_set() -> None:
    withdrawal = Withdrawal()
    waiting = [asyncio.ensure_future(withdrawal.wait_async(3600)) for _ in range(2)]
    await asyncio.sleep(0)
    withdrawal.set()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 30) == [True, True]


async def test_waiting_in_vain_says_so() -> None:
    assert not await Withdrawal().wait_async(0)


async def test_nobody_waits_for_what_is_set_already() -> None:
    withdrawal = Withdrawal()
    withdrawal.set()
    assert await withdrawal.wait_async(3600)
    assert withdrawal.wait(3600)


async def test_setting_it_twice_or_after_a_wait_was_given_up_harms_nobody() -> None:
    withdrawal = Withdrawal()
    waiting = asyncio.ensure_future(withdrawal.wait_async(3600))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    withdrawal.set()
    withdrawal.set()
    assert withdrawal.is_set()


async def test_an_async_listener_holds_without_stopping_the_event_loop() -> None:
    context = ConsumeContext(QUEUE)
    await context.hold_async(0)
    holding = asyncio.ensure_future(context.hold_async(3600))
    await asyncio.sleep(0)
    context.withdrawn.set()
    with pytest.raises(MessagesWithdrawn, match="were withdrawn from their listener"):
        await asyncio.wait_for(holding, 30)


async def test_an_async_listener_that_would_stop_the_event_loop_is_told_what_to_write() -> None:
    with pytest.raises(NotRunning, match=r"use await context.hold_async\(seconds\)"):
        ConsumeContext(QUEUE).hold(0)
