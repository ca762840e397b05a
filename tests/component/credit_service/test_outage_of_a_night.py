"""Everything behind the consumer is away for a night: afterwards every order has its credit, and none was given back."""

import asyncio
import json
import logging
import time

import pytest

from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.ledger import Ledger
from credit_service.service_layer.order_listener import CreditingListener
from credit_service.service_layer.patient_crediting import PatientCrediting
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.push.concurrent_consumption import ConcurrentConsumption
from rocketmq_broker.client.push.listener_runners import ListenerThreads
from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.world import World
from service_runtime.failing.holds import REMIND_AFTER_S, Holds
from tests.component.credit_service.conftest import ORDER, a_message
from tests.unit.client.push.test_consumption import Return
from tests.unit.credit_service.credit_side import CreditSide

HOUR_S = 3600.0
NIGHT_S = 6 * HOUR_S
ORDERS, BATCH, THREADS = 50, 4, 8


async def test_after_a_night_without_redis_workers_and_database_all_is_credited_and_no_redelivery_is_spent(
    sqlite_ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "service_runtime")
    side = CreditSide(sqlite_ledger)
    clock = side.clock
    side.is_redis_up = lambda: clock() >= 2 * HOUR_S
    side.are_workers_up = lambda: clock() >= 4 * HOUR_S
    side.is_database_up = lambda: clock() >= NIGHT_S
    holds = Holds(now_s=clock)
    crediting = CeleryCrediting(side, World(steady_ns=lambda: int(clock() * 1e9)), timeout_s=10)
    listener = CreditingListener(PatientCrediting(crediting, holds, threads=THREADS, wait=clock.wait))
    threads, returned = ListenerThreads("listener", THREADS, None), Return()
    consumption = ConcurrentConsumption(
        listener, threads, lambda _: None, returned, batch_size=BATCH, statistics=ConsumerStatistics(time.monotonic)
    )  # type: ignore[arg-type]

    process_queue = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0, World())
    bodies = [json.dumps(ORDER | {"order_id": f"order-{number}", "total_cents": 100}).encode() for number in range(ORDERS)]
    pulled = process_queue.put([a_message(body, offset) for offset, body in enumerate(bodies)], ORDERS)
    consumption.arrived(process_queue, pulled)
    async with asyncio.timeout(240):
        while process_queue.message_count:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
    await consumption.stop(1)

    found = sqlite_ledger.find_customer("ada", max_entries=ORDERS)
    assert found is not None
    assert (found.points, len({entry.order_id for entry in found.entries})) == (ORDERS, ORDERS)
    assert clock() >= NIGHT_S
    assert returned.taken == returned.dead == []
    assert process_queue.committable_offset == ORDERS
    assert side.most_waiting <= THREADS
    began, *reminders, ended = caplog.messages
    assert "orders are held: the task could not be sent: ConnectionError" in began
    assert 0 < len(reminders) <= NIGHT_S / REMIND_AFTER_S + 1
    assert ended.startswith("no order is held any more, after 6.0 h")
