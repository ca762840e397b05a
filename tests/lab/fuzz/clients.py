"""Tests the client with fuzzed responses from brokers and name servers, and with fuzzed requests from a broker."""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from rocketmq_broker.client import ClientError, ConsumeStatus, LocalTransactionState, PushConsumer, TransactionProducer
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.name_servers import NameServers
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.errors import FrameError
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.remoting.errors import ConnectionClosed
from tests.lab.fuzz.frames import FrameMaker, code_name
from tests.lab.fuzz.servers import running_broker
from tests.lab.fuzz.transport import connected
from tests.lab.fuzz.watch import Watch

EXPECTED = (ClientError,)
"""What the client's loops wait out, and programs catch."""
_QUEUE = MessageQueue("orders", "broker-a", 0)


class HostileRemoting:
    """A replacement for the client's connections. Each request gets a fuzzed response, which the real decoder reads."""

    def __init__(self, watch: Watch, maker: FrameMaker) -> None:
        self._watch, self._maker = watch, maker
        self.connections: set[Any] = set()

    async def invoke(
        self, address: str, code: int, header: object = None, body: bytes = b"", *, timeout_ms: int = 0
    ) -> RemotingCommand:
        """Returns a fuzzed response. Raises ConnectionClosed if its frame is invalid, as a real connection does."""
        before_s = time.thread_time()
        frame = self._maker.answer(code, 1)
        self._watch.current = f"client's answer {code_name(code)} {frame[:3000].hex()}"
        self._watch.own_ms += (time.thread_time() - before_s) * 1000
        try:
            (command,) = FrameDecoder().feed(frame)
        except FrameError as error:
            raise ConnectionClosed(str(error)) from None
        return command


async def fuzz_answers(watch: Watch, chance: random.Random, inputs: int) -> None:
    """Gives every request of the client a fuzzed response. The client must accept it or raise an error that callers expect."""
    remoting = cast(Any, HostileRemoting(watch, FrameMaker(chance)))
    for number in range(inputs):
        questions = _questions(remoting)
        name, ask = questions[number % len(questions)]
        with watch.frame("client's answers", name, b""), suppress(*EXPECTED):
            await ask()
        if number % 50 == 0:
            await asyncio.sleep(0)


def _questions(remoting: Any) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
    name_servers = NameServers(("127.0.0.1:9876",), remoting)
    routes = Routes(name_servers)
    routes._brokers = {"broker-a": {0: "127.0.0.1:10911"}}
    calls = BrokerCalls(remoting, routes)
    queues, groups = QueueRequests(calls), GroupRequests(calls)
    subscription = Subscription.parse("orders", "a || b", 1)

    async def subscribe() -> None:
        await routes.refresh("orders")
        routes.queues_to_subscribe("orders")

    return [
        ("route to subscribe", subscribe),
        ("route to publish", lambda: routes.queues_to_publish("orders")),
        ("cluster", name_servers.cluster_info),
        ("pull", lambda: queues.pull("credits", _QUEUE, 0, subscription=subscription, max_messages=32)),
        ("committed offset", lambda: queues.committed_offset("credits", _QUEUE)),
        ("max offset", lambda: queues.max_offset(_QUEUE)),
        ("search offset", lambda: queues.search_offset(_QUEUE, 1)),
        ("members", lambda: groups.consumer_ids("credits", "broker-a")),
        ("locks", lambda: groups.lock_queues("credits", "c", "broker-a", [_QUEUE])),
    ]


class _Listener:
    def execute_local_transaction(self, message: object, arg: object) -> LocalTransactionState:
        """Returns UNKNOWN. It is never called here."""
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: object) -> LocalTransactionState:
        """Returns UNKNOWN."""
        return LocalTransactionState.UNKNOWN


async def fuzz_requests(watch: Watch, chance: random.Random, inputs: int) -> None:
    """Sends fuzzed requests to a running producer and consumer, which are connected to an honest broker."""
    maker = FrameMaker(chance)
    with tempfile.TemporaryDirectory(prefix="fuzz-client-") as root:
        async with running_broker(Path(root)) as broker:
            address = ";".join(broker.name_servers)
            producer = TransactionProducer("orders", _Listener(), namesrv_addr=address)
            consumer = PushConsumer("credits", namesrv_addr=address)
            consumer.subscribe("orders")
            consumer.register_message_listener(lambda messages, context: ConsumeStatus.CONSUME_SUCCESS)
            await producer.start()
            await consumer.start()
            try:
                for number in range(inputs):
                    instance = cast(Any, consumer if number % 2 else producer)._lifecycle.running().instance
                    code, frame = maker.request(list(instance._dispatcher._handlers))
                    connection, transport = connected(instance._dispatcher, instance.remoting.connections, 1 + number % 60_000)
                    with watch.frame("client's requests", code_name(code), frame):
                        connection.data_received(frame)
                    await asyncio.sleep(0)
                    transport.close()
                    await asyncio.sleep(0)
            finally:
                await consumer.shutdown()
                await producer.shutdown()
