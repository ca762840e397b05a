"""Tests that `advance` skips the time in which a broker and its clients only do maintenance.

`tests/lab/leaps` checks that tests have the same results with and without skipping.
"""

from pathlib import Path
from typing import Final

import pytest

import rocketmq_broker
from rocketmq_broker.testing import RocketMQ, SyncRocketMQ
from rocketmq_broker.testing.control import OK, Control
from rocketmq_broker.testing.loops import idle_skip
from tests.unit.testing.listeners import Consumption, order

PACKAGE: Final = Path(rocketmq_broker.__file__).parent


async def test_four_hundred_days_cost_no_more_than_some_hours() -> None:
    async with RocketMQ(seed=1) as world:
        consumption = Consumption()
        producer = await world.producer("p")
        await producer.create_topic("orders")
        await world.consumer("c", "orders", consumption)
        await producer.send(order("order-1"))
        before_s, turns = world.time.elapsed_s, world.time.turns
        await world.advance(days=400)
        assert world.time.elapsed_s - before_s == pytest.approx(400 * 86_400)
        assert world.time.turns - turns < 50_000
        await producer.send(order("order-2"))
        await world.settle()
        assert len(consumption.got) == 2


def test_a_synchronous_test_leaps_too() -> None:
    with SyncRocketMQ() as world:
        producer = world.producer("p")
        producer.send(order("order-1"))
        before_s = world.elapsed_s
        world.advance(days=400)
        assert world.elapsed_s - before_s == pytest.approx(400 * 86_400)
        producer.send(order("order-2"))
        assert len(world.messages("orders")) == 2


async def test_the_control_door_leaps_too() -> None:
    async with RocketMQ() as world:
        control = Control(world)
        before_s, turns = world.time.elapsed_s, world.time.turns
        assert await control.answer("POST", "advance", {"days": 400}) == (OK, {"elapsedSeconds": 34_560_000.0})
        assert world.time.elapsed_s - before_s == pytest.approx(400 * 86_400, abs=1)
        assert world.time.turns - turns < 50_000


def test_each_maintenance_timer_in_the_list_exists() -> None:
    """The source contains each timer. A renamed timer would only make tests slower, which no other test detects."""
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "idle_skip.py")
    names = [*idle_skip._CALLS, *(name for name, _ in idle_skip._TASKS)]
    assert [name for name in names if f'"{name}' not in source] == []
    works = [work.split(".")[-1] for _, work in idle_skip._TASKS]
    assert [work for work in works if f"async def {work}(" not in source] == []
