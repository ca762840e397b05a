import asyncio

import pytest

from rocketmq_broker.remoting.alarm import Alarm


async def test_a_wait_ends_when_the_alarm_rings() -> None:
    alarm = Alarm()
    waiting = asyncio.create_task(alarm.wait(None))
    await asyncio.sleep(0)
    assert not waiting.done()

    alarm.ring()
    await waiting


async def test_a_wait_ends_when_its_time_is_over() -> None:
    await Alarm().wait(0.001)


async def test_an_alarm_that_rang_before_ends_the_next_wait_and_no_other() -> None:
    alarm = Alarm()
    alarm.ring()
    alarm.ring()

    await alarm.wait(None)
    waiting = asyncio.create_task(alarm.wait(None))
    await asyncio.sleep(0.01)

    assert not waiting.done()
    waiting.cancel()


async def test_an_alarm_that_rings_when_the_time_is_over_ends_one_wait() -> None:
    alarm = Alarm()
    waiting = asyncio.create_task(alarm.wait(0))
    await asyncio.sleep(0)
    alarm.ring()
    await waiting
    again = asyncio.create_task(alarm.wait(None))
    await asyncio.sleep(0.01)
    assert not again.done()
    again.cancel()
    with pytest.raises(asyncio.CancelledError):
        await again
    alarm.ring()
    await alarm.wait(None)
