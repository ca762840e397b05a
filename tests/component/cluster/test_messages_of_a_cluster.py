"""Tests that no message is lost while brokers crash, join or leave, and that a transaction stays on its broker."""

import asyncio
import contextlib
from collections import Counter

import pytest

from demo.commit_log import read_traces
from rocketmq_broker.client import ClientError, LocalTransactionState, Producer, TransactionProducer
from rocketmq_broker.cluster.leaving import DrainPace
from rocketmq_broker.cluster.supervisor import SupervisorOptions, supervise
from rocketmq_broker.config import load_settings
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.world import current_world
from tests.component.cluster.conftest import RunningCluster
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.waiting import until

PATIENCE_S = 120


class OrderBook:
    """A transaction listener that commits each order. The decision of every third order is made by a check-back."""

    def __init__(self) -> None:
        self.committed: dict[str, str] = {}

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        assert message.transaction_id
        self.committed[message.transaction_id] = message.body.decode()
        return LocalTransactionState.UNKNOWN if len(self.committed) % 3 == 0 else LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        assert message.transaction_id
        known = message.transaction_id in self.committed
        return LocalTransactionState.COMMIT_MESSAGE if known else LocalTransactionState.ROLLBACK_MESSAGE


@pytest.mark.timeout(300)
async def test_a_broker_that_is_killed_loses_no_transaction(cluster: RunningCluster) -> None:
    supervisor = await asyncio.to_thread(cluster.start, 2)
    book, inbox = OrderBook(), Inbox()
    await send(cluster, "the topic's", 1)
    await until(lambda: "cluster  | new topics created on all brokers: orders" in supervisor.output(), PATIENCE_S)
    async with (
        running(TransactionProducer("orders", book, namesrv_addr=cluster.namesrv_addr, **PATIENT)) as producer,
        running(consumer(cluster.namesrv_addr, "credits", "orders", inbox)),
    ):
        for number in range(120):
            if number == 60:
                cluster.child(supervisor, "broker-b").kill()
            with contextlib.suppress(ClientError):  # a customer who is told so, and has no order
                await producer.send_message_in_transaction(Message.of("orders", b"%d" % number), None)
        await until(lambda: set(inbox.bodies) - {"the topic's 0"} == set(book.committed.values()), PATIENCE_S)
    await asyncio.to_thread(supervisor.stop)
    traces = [(name, trace) for name in ("broker-a", "broker-b") for trace in read_traces(cluster.folder / name)]
    assert {name for name, _ in traces} == {"broker-a", "broker-b"}, "both brokers took transactions"
    delivered = Counter(trace.half.body.decode() for _, trace in traces if trace.committed)
    assert delivered == Counter(book.committed.values()), "each once, at the broker that had its half message"
    assert all(len(trace.committed) <= 1 and trace.op is not None for _, trace in traces)


@pytest.mark.timeout(300)
async def test_a_broker_that_is_added_takes_its_share_and_one_that_is_taken_away_serves_what_it_holds(
    cluster: RunningCluster,
) -> None:
    alone = await asyncio.to_thread(cluster.start, 1)
    await send(cluster, "old", 8)
    await asyncio.to_thread(alone.stop)

    both = await asyncio.to_thread(cluster.start, 2)
    assert "broker-b is new: it starts with the other brokers' topics (1) and no messages" in both.output()
    assert set(await send(cluster, "new", 32)) == {"broker-a", "broker-b"}
    await asyncio.to_thread(both.stop)

    said: list[str] = []
    settings = load_settings(cluster.conf).settings
    pace = DrainPace(0.2, 1.0)
    options = SupervisorOptions(settings, 1, lambda name, text: said.append(f"{name}: {text}"), current_world(), pace=pace)
    supervision = asyncio.create_task(supervise(options))
    try:
        await until(lambda: any("which no group consumes" in line for line in said), PATIENCE_S)
        await until(lambda: any(line.startswith("cluster: The cluster[") for line in said), PATIENCE_S)  # broker-a is there, too
        assert any(line.startswith("cluster: broker-b leaves the cluster: clients no longer send to it") for line in said)
        assert set(await send(cluster, "later", 16)) == {"broker-a"}, "clients send to the broker that stays"
        inbox = Inbox()
        async with running(consumer(cluster.namesrv_addr, "credits", "orders", inbox)):
            await until(lambda: "cluster: broker-b is drained and stopped." in "\n".join(said), PATIENCE_S)
            await until(lambda: len(set(inbox.bodies)) == 8 + 32 + 16, PATIENCE_S)
    finally:
        options.stopping.set()
        assert await supervision

    back = await asyncio.to_thread(cluster.start, 2)
    assert "broker-b rejoins the cluster with its old store" in back.output()


async def send(cluster: RunningCluster, what: str, count: int) -> Counter[str]:
    """Sends messages, and returns the number of messages that each broker received."""
    async with running(Producer("shop", namesrv_addr=cluster.namesrv_addr, **PATIENT)) as producer:
        results = [await producer.send(Message.of("orders", f"{what} {number}".encode())) for number in range(count)]
    return Counter(result.queue.broker_name for result in results)
