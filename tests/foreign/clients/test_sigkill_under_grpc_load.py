"""Kills the broker with SIGKILL while RocketMQ 5 clients send, decide, receive and acknowledge messages.

No message is lost, and no acknowledged message is delivered again.
"""

import asyncio
import itertools
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import grpc.aio
import pytest

from demo.ports import free_ports
from rocketmq_broker.proxy.protos import definition_pb2 as api
from tests.component.proxy.api_client import ApiClient
from tests.conftest import BrokerProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

KILLS = 3
SENDERS = 4
CONSUMERS = 2
INVISIBLE_S = 10  # the least that a broker accepts
ORDERS, GROUP = api.Resource(name="orders"), api.Resource(name="group")
RECONNECTS_SOON = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 200)]


class Load:
    """Clients that continue while the broker is down, and the broker's responses to them."""

    def __init__(self, client: ApiClient) -> None:
        self.promised: set[str] = set()
        """Messages whose sending, or commit, was answered with OK."""
        self.refused: set[str] = set()
        """Transactions whose rollback was answered with OK."""
        self.received: set[str] = set()
        self.acknowledged: set[str] = set()
        """Received messages whose acknowledgement was answered with OK."""
        self.came_again: list[str] = []
        """Messages that came although they were acknowledged."""
        self.failed = 0
        self.is_sending = True
        self._client = client
        self._numbers = itertools.count()

    async def send(self) -> None:
        """Sends plain and transactional messages. Each attempt is a separate message."""
        chance = random.Random(3)
        while self.is_sending:
            message_id, kind = f"message-{next(self._numbers)}", chance.choice((api.NORMAL, api.TRANSACTION))
            answer = await self._answered(self._client.send("orders", b"hello", message_id=message_id, message_type=kind))
            if answer is None or answer.status.code != api.OK:
                continue
            if kind == api.NORMAL:
                self.promised.add(message_id)
            else:
                await self._decide(message_id, answer.entries[0].transaction_id, chance.choice((api.COMMIT, api.ROLLBACK)))

    async def _decide(self, message_id: str, transaction_id: str, resolution: api.TransactionResolution) -> None:
        answer = None
        while answer is None:  # a client whose decision was not answered says it again
            answer = await self._answered(
                self._client.call(
                    "EndTransaction",
                    topic=ORDERS,
                    message_id=message_id,
                    transaction_id=transaction_id,
                    resolution=resolution,
                    source=api.SOURCE_CLIENT,
                )
            )
        (self.promised if resolution == api.COMMIT else self.refused).add(message_id)

    async def consume(self) -> None:
        """Receives and acknowledges messages until cancelled."""
        while True:
            for message in await self._received():
                system = message.system_properties
                self.received.add(system.message_id)
                if system.message_id in self.acknowledged:
                    self.came_again.append(system.message_id)
                entry = {"message_id": system.message_id, "receipt_handle": system.receipt_handle}
                answer = await self._answered(self._client.call("AckMessage", group=GROUP, topic=ORDERS, entries=[entry]))
                if answer is not None and answer.status.code == api.OK:
                    self.acknowledged.add(system.message_id)

    async def _received(self) -> list[api.Message]:
        answers = await self._answered(
            self._client.stream(
                "ReceiveMessage",
                group=GROUP,
                message_queue=api.MessageQueue(topic=ORDERS, id=-1),
                batch_size=8,
                invisible_duration=timedelta(seconds=INVISIBLE_S),
                long_polling_timeout=timedelta(seconds=1),
            )
        )
        return [answer.message for answer in answers or () if answer.HasField("message")]

    async def _answered(self, call: Any) -> Any:
        """Returns the response, or None after a short pause if the call fails because the broker is down."""
        try:
            return await call
        except grpc.aio.AioRpcError:
            self.failed += 1
            await asyncio.sleep(0.1)
            return None


@pytest.mark.timeout(300)
async def test_kills_lose_nothing_and_bring_nothing_back_that_was_acknowledged(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    (grpc_port,) = free_ports(1)
    broker = start_broker({"grpcServerPort": str(grpc_port), "flushDiskType": "SYNC_FLUSH"})
    endpoint = f"127.0.0.1:{grpc_port}"
    async with grpc.aio.insecure_channel(endpoint, options=RECONNECTS_SOON) as channel, asyncio.TaskGroup() as tasks:
        load = Load(ApiClient(channel, endpoint, {"x-mq-client-id": "client-1"}))
        consuming = [tasks.create_task(load.consume()) for _ in range(CONSUMERS)]
        sending = [tasks.create_task(load.send()) for _ in range(SENDERS)]
        await kill_again_and_again(broker, load)
        load.is_sending = False
        await asyncio.gather(*sending)
        async with asyncio.timeout(60):
            while load.promised - load.received:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.1)
        await asyncio.sleep(INVISIBLE_S + 1)  # what is hidden and not acknowledged comes again by then
        for task in consuming:
            task.cancel()

    print(f"{KILLS} kills, {len(load.promised)} messages promised, {load.failed} calls failed")
    assert load.failed
    assert load.came_again == []
    assert load.received & load.refused == set()


async def kill_again_and_again(broker: BrokerProcess, load: Load) -> None:
    moment = random.Random(2)
    for _ in range(KILLS):
        before = len(load.acknowledged)
        while len(load.acknowledged) < before + 20:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
        await asyncio.sleep(moment.uniform(0, 0.2))
        broker.process.kill()
        broker.process.spawn()
        await asyncio.to_thread(broker.process.wait_until_ready)
