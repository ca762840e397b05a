"""Tests of the services with Apache's clusters, under load, while brokers are killed.

docs/scale.md has what this shows, and which settings it needs.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from demo.asking import ask
from demo.books import ShopBooks
from demo.processes import Processes
from demo.system import System
from order_messages import credit_refused, order_cancelled, order_created, stock_short
from rocketmq_broker.admin.broker_requests.figures import consume_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.client import ClientError, Producer, SendStatus
from rocketmq_broker.client.instance.name_servers import NameServers, name_server_addresses
from rocketmq_broker.message import Message, MessageQueue
from rocketmq_broker.message.topics import HALF_TOPIC, TRANSACTION_CONSUMER_GROUP
from rocketmq_broker.protocol.bodies.route import MASTER_ID
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import RemotingError
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.foreign.apache.cluster import Cluster, Member, apache_cluster
from tests.load import PATIENCE_S, UNPAID, Load, place_unpaid, post
from tests.waiting import until, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(1200)]

T = TypeVar("T")
SETTINGS = {
    "FLUSH": "ASYNC_FLUSH",
    "CHECK_INTERVAL_MS": "1000",
    "TRANSACTION_TIMEOUT_MS": "1000",
    "CHECK_MAX": "100000",
    # slaveTimeout is less than half of ORDER_SEND_TIMEOUT_MS. Its default, 3 s, is all of it.
    "PROPERTIES": "slaveTimeout=1000 mappedFileSizeCommitLog=67108864 autoCreateTopicEnable=false",
}
REPLICATED = {**SETTINGS, "PROPERTIES": f"{SETTINGS['PROPERTIES']} allAckInSyncStateSet=true"}
"""The settings of replicas whose master the controller elects."""
A, B = "broker-a", "broker-b"
CREDIT_GROUP = "credit_service"
PROBES = "probes"
"""The topic of the test's own messages."""
READERS = "readers"
"""The group that reads them."""
CONTROLLER_GET_METADATA_INFO = 1005
"""Apache's code of the request for the controller that leads. Our broker has no controller."""


def asked(ask: Callable[[RemotingClient], Coroutine[Any, Any, T]]) -> T:
    """Returns the answer to one question, asked on connections of its own."""

    async def ask_and_close() -> T:
        remoting = RemotingClient()
        try:
            return await ask(remoting)
        finally:
            await remoting.close()

    return asyncio.run(ask_and_close())


def offsets_at(member: Member, group: str, topic: str) -> tuple[int, int]:
    """Returns the number of the topic's messages at the broker, and how many of them the group has consumed."""
    stats = asked(lambda remoting: consume_stats(BrokerRequests(remoting, member.address), group, topic))
    queues = stats.offset_table.values()
    return sum(queue.broker_offset for queue in queues), sum(max(0, queue.consumer_offset) for queue in queues)


def has_pending(master: Member) -> bool:
    """Returns True if the master has half messages that it has not passed with its own group."""
    stored, passed = offsets_at(master, TRANSACTION_CONSUMER_GROUP, HALF_TOPIC)
    return stored > passed


async def make_topics(cluster: Cluster) -> None:
    """Makes the topics on both masters. A topic that its first message makes is on one of them only."""
    async with running(Producer("operator", namesrv_addr=cluster.namesrv_addr, **PATIENT)) as producer:
        for kind in (order_created, order_cancelled, stock_short, credit_refused):
            await producer.create_topic(kind.TOPIC)
        await producer.create_topic(PROBES)


def status_at(cluster: Cluster, broker_name: str, body: str = "?") -> SendStatus | None:
    """Sends a message to the broker. Returns the send status; None if the broker does not store it in time."""

    async def send() -> SendStatus | None:
        async with running(Producer("probe", namesrv_addr=cluster.namesrv_addr)) as producer:
            try:
                return (await producer.send(Message.of(PROBES, body), MessageQueue(PROBES, broker_name, 0))).send_status
            except ClientError:
                return None

    return asyncio.run(send())


def status_without(slave: Member, cluster: Cluster, broker_name: str) -> SendStatus | None:
    """Returns the status of a message while the slave is halted.

    Its master drops it after 20 s (SLAVE_NOT_AVAILABLE), or 15 s with a controller (SEND_OK).
    """
    with slave.halted():
        return status_at(cluster, broker_name)


def addresses_of(cluster: Cluster, broker_name: str) -> Mapping[int, str]:
    """Returns the addresses that the name server has for the broker, by broker id. The master's id is 0."""
    info = asked(lambda remoting: NameServers(name_server_addresses(cluster.namesrv_addr), remoting).cluster_info())
    return info.broker_addr_table[broker_name].broker_addrs if info and broker_name in info.broker_addr_table else {}


def await_master(cluster: Cluster, member: Member | None) -> None:
    """Waits until the name server has the member as the master of broker-a, or none."""
    address = member.address if member else None
    wait_until(lambda: addresses_of(cluster, A).get(MASTER_ID) == address, PATIENCE_S)


def leading_controller(cluster: Cluster) -> Member | None:
    """Returns the name server whose controller leads; None while they elect one."""
    leaders = set()
    for address in cluster.controllers:
        with suppress(RemotingError):
            answer = asked(partial(RemotingClient.invoke, address=address, code=CONTROLLER_GET_METADATA_INFO))
            leaders.add(answer.ext_fields().get("controllerLeaderAddress"))
    leaders -= {None, ""}
    return cluster.controllers[leaders.pop()] if len(leaders) == 1 else None


def await_status(cluster: Cluster, broker_name: str, status: SendStatus) -> None:
    wait_until(lambda: status_at(cluster, broker_name) is status, PATIENCE_S)


def read_until(cluster: Cluster, body: str) -> None:
    """Consumes the test's messages until one has this body. The group continues where it stopped before."""

    async def read() -> None:
        inbox = Inbox()
        async with running(consumer(cluster.namesrv_addr, READERS, PROBES, inbox)):
            await until(lambda: body in [message.text for message in inbox.messages], PATIENCE_S)

    asyncio.run(read())


def require_one_credit_each(system: System, orders: set[str]) -> None:
    """Waits for the credits, and stops the services. Fails unless these orders are stored, with one credit each."""
    books = ShopBooks(system.order_database_url, system.credit_database_url)
    wait_until(lambda: books.credited() >= len(orders), PATIENCE_S)
    for process in reversed(system.services):
        process.stop()
    print(f"{len(orders)} orders, of which {UNPAID} were paid while their half messages were pending")
    assert books.orders().keys() == orders
    assert Counter(credit.order_id for credit in books.credits()) == Counter(orders)


def test_no_order_is_lost_or_credited_twice_while_masters_and_slaves_are_killed(processes: Processes, tmp_path: Path) -> None:
    with apache_cluster(tmp_path / "apache", (A, B), SETTINGS) as cluster:
        asyncio.run(make_topics(cluster))
        for name in (A, B):
            await_status(cluster, name, SendStatus.SEND_OK)
        system = System(processes, tmp_path / "services", namesrv_addr=cluster.namesrv_addr)
        system.start_services()
        load = Load(system.order_url)

        def await_rollback_at(broker_name: str) -> None:
            line = re.compile(f"broker {broker_name}: (FLUSH_SLAVE_TIMEOUT|SLAVE_NOT_AVAILABLE); rolled back")
            wait_until(lambda: line.search(system.order_service.output()), PATIENCE_S)

        with load.running():
            load.go_on()
            unpaid = place_unpaid(system.order_url)
            read_until(cluster, "?")

            wait_until(lambda: status_without(cluster.slaves[A], cluster, A) is SendStatus.FLUSH_SLAVE_TIMEOUT, PATIENCE_S)
            with cluster.slaves[A].halted():
                await_rollback_at(A)
                load.go_on()
            assert has_pending(cluster.masters[B])
            cluster.slaves[B].kill()
            await_status(cluster, B, SendStatus.SLAVE_NOT_AVAILABLE)
            await_rollback_at(B)
            load.go_on()
            cluster.slaves[B].restart()
            await_status(cluster, B, SendStatus.SEND_OK)

            wait_until(lambda: offsets_at(cluster.slaves[A], READERS, PROBES)[1], PATIENCE_S)  # a slave reads them every 10 s
            assert status_at(cluster, A, "the last words of broker-a") is SendStatus.SEND_OK
            assert has_pending(cluster.masters[A])
            cluster.masters[A].kill()
            load.go_on()
            read_until(cluster, "the last words of broker-a")  # from the slave
            for order_id in unpaid:
                post(f"{system.order_url}/orders/{order_id}/payment", {})
            load.go_on()
            cluster.masters[A].restart()
            await_status(cluster, A, SendStatus.SEND_OK)
            load.go_on()

        require_one_credit_each(system, {*load.placed, *unpaid})


@pytest.mark.release
def test_no_order_is_lost_or_credited_twice_while_a_controller_elects_masters(processes: Processes, tmp_path: Path) -> None:
    with apache_cluster(tmp_path / "apache", (A,), REPLICATED, version="5.5.0", controllers=3) as cluster:
        one, other = cluster.masters[A], cluster.slaves[A]
        asyncio.run(make_topics(cluster))
        system = System(processes, tmp_path / "services", namesrv_addr=cluster.namesrv_addr)
        system.start_services()
        books = ShopBooks(system.order_database_url, system.credit_database_url)
        load = Load(system.order_url)

        def await_in_sync(slave: Member) -> None:
            wait_until(lambda: status_without(slave, cluster, A) is SendStatus.FLUSH_SLAVE_TIMEOUT, PATIENCE_S)
            await_status(cluster, A, SendStatus.SEND_OK)

        with load.running():
            load.go_on()
            unpaid = place_unpaid(system.order_url)
            await_in_sync(other)

            assert has_pending(one)
            one.kill()
            await_master(cluster, other)
            load.go_on()
            for order_id in unpaid:
                post(f"{system.order_url}/orders/{order_id}/payment", {})
            wait_until(lambda: {*unpaid} <= {credit.order_id for credit in books.credits()}, PATIENCE_S)
            one.restart()
            await_in_sync(one)
            await_master(cluster, other)
            load.go_on()

            leader = leading_controller(cluster)
            assert leader is not None
            leader.kill()
            wait_until(lambda: leading_controller(cluster), PATIENCE_S)
            with other.halted():
                await_master(cluster, one)
                load.go_on()
                other.kill()  # one that wakes up may acknowledge a message that only it has (docs/scale.md)
            leader.restart()
            other.restart()
            await_in_sync(other)
            await_master(cluster, one)
            load.go_on()
            one, other = other, one

            one.kill()
            await_status(cluster, A, SendStatus.SEND_OK)  # without the slave, which has left the set of those in sync
            load.go_on()
            other.kill()
            await_master(cluster, None)
            one.restart()  # it lacks orders, so no one is elected while the other one starts
            other.restart()
            await_master(cluster, other)
            load.go_on()

        require_one_credit_each(system, {*load.placed, *unpaid})
        sent, _ = offsets_at(other, CREDIT_GROUP, order_created.TOPIC)
        print(f"{sent} messages, because the broker checks committed transactions, too, and delivers them again")


@pytest.mark.release
def test_where_two_replicas_are_required_orders_wait_and_a_master_that_wakes_up_takes_none(
    processes: Processes, tmp_path: Path
) -> None:
    properties = f"{REPLICATED['PROPERTIES']} minInSyncReplicas=2"
    settings = {**REPLICATED, "PROPERTIES": properties}
    with apache_cluster(tmp_path / "apache", (A,), settings, version="5.5.0", controllers=1) as cluster:
        asyncio.run(make_topics(cluster))
        await_status(cluster, A, SendStatus.SEND_OK)  # both replicas are there
        system = System(processes, tmp_path / "services", namesrv_addr=cluster.namesrv_addr)
        system.start_services()
        load = Load(system.order_url)
        with load.running():
            load.go_on()
            unpaid = place_unpaid(system.order_url)
            cluster.slaves[A].kill()
            wait_until(lambda: "in-sync replicas not enough" in system.order_service.output(), PATIENCE_S)
            wait_until(lambda: ask("GET", f"{system.order_url}/readyz", timeout_s=60).status_code == 503, PATIENCE_S)
            cluster.slaves[A].restart()
            load.go_on()
            with cluster.masters[A].halted():
                await_master(cluster, cluster.slaves[A])
            # It wakes up as a master with requests, and alone in its syncStateSet (AutoSwitchHAService.removeConnection).
            load.go_on()
            for order_id in unpaid:
                post(f"{system.order_url}/orders/{order_id}/payment", {})
        require_one_credit_each(system, {*load.placed, *unpaid})
