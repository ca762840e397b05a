"""Known routes are kept, each request is sent once, and the log reports a missing route once."""

import asyncio
import logging
from typing import cast

import pytest

from rocketmq_broker.client import BrokerUnreachable, MessageQueue, NameServerUnreachable, NoRoute
from rocketmq_broker.client.instance.name_servers import NameServers
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.protocol.bodies.route import BrokerData, ClusterInfo, QueueData, TopicRouteData
from rocketmq_broker.testing.virtual_time import VirtualTime
from tests.passing_time import in_virtual_time
from tests.waiting import until

TEMPLATE = "TBW102"


def route_at(*brokers: str, queues: int = 2, perm: int = 6) -> TopicRouteData:
    return TopicRouteData(
        queue_datas=[QueueData(name, queues, queues, perm) for name in brokers],
        broker_datas=[BrokerData("c", name, {0: f"{name}:1"}) for name in brokers],
    )


class Servers:
    """Name servers with the given routes. They are unreachable while `is_up` is False."""

    addresses = ("a:9876", "b:9876")

    def __init__(self, **routes: TopicRouteData) -> None:
        self.routes = routes
        self.is_up = True
        self.asked: list[str] = []
        self.cluster: ClusterInfo | None = None
        self.gate: asyncio.Event | None = None

    async def find_route(self, topic: str) -> TopicRouteData | None:
        self.asked.append(topic)
        if self.gate is not None:
            await self.gate.wait()
        if not self.is_up:
            raise NameServerUnreachable("no name server answers")
        return self.routes.get(topic)

    async def cluster_info(self) -> ClusterInfo | None:
        return self.cluster


def routes_of(servers: Servers) -> Routes:
    return Routes(cast(NameServers, servers), queues_of_new_topics=3)


async def test_a_route_is_asked_for_at_first_use_alone() -> None:
    servers = Servers(orders=route_at("x"))
    routes = routes_of(servers)
    queues = [MessageQueue("orders", "x", 0), MessageQueue("orders", "x", 1)]
    assert await routes.queues_to_publish("orders") == queues
    assert await routes.queues_to_publish("orders") == queues
    assert servers.asked == ["orders"]


async def test_a_topic_that_its_first_message_creates_has_the_queues_of_the_template_at_most() -> None:
    routes = routes_of(Servers(**{TEMPLATE: route_at("x", queues=8)}))
    assert [queue.queue_id for queue in await routes.queues_to_publish("new")] == [0, 1, 2]


async def test_a_topic_that_nobody_has_or_creates_says_what_to_do() -> None:
    routes = routes_of(Servers())
    with pytest.raises(NoRoute, match=r"no broker has topic new, .*registered at a:9876;b:9876, and create the topic"):
        await routes.queues_to_publish("new")


async def test_a_read_only_topic_takes_no_messages() -> None:
    routes = routes_of(Servers(orders=route_at("x", perm=4)))
    with pytest.raises(NoRoute, match="no broker accepts messages for topic orders: its masters are down"):
        await routes.queues_to_publish("orders")


async def test_what_was_known_stays_known_while_name_servers_are_away() -> None:
    servers = Servers(orders=route_at("x"))
    routes = routes_of(servers)
    assert await routes.refresh("orders")
    servers.is_up = False
    with pytest.raises(NameServerUnreachable):
        await routes.refresh("orders")
    assert routes.queues_to_subscribe("orders")
    assert await routes.address_of("x") == "x:1"


@pytest.mark.parametrize("hangs", [False, True], ids=["away", "hanging"])
async def test_a_topic_that_was_sent_to_is_sent_to_while_name_servers_are_away_or_hang(hangs: bool) -> None:
    servers = Servers(**{TEMPLATE: route_at("x")})
    routes = routes_of(servers)
    queues = await routes.queues_to_publish("orders")
    servers.is_up, servers.gate = hangs, asyncio.Event() if hangs else None
    assert await routes.queues_to_publish("orders") == queues


@pytest.mark.parametrize("before", [TEMPLATE, "orders"])
async def test_a_new_route_replaces_the_queues_to_send_to(before: str) -> None:
    servers = Servers(**{before: route_at("x", queues=1)})
    routes = routes_of(servers)
    assert len(await routes.queues_to_publish("orders")) == 1
    servers.routes["orders"] = route_at("x", "y", queues=3)
    await routes.refresh("orders")
    assert [queue.broker_name for queue in await routes.queues_to_publish("orders")] == ["x"] * 3 + ["y"] * 3


async def test_the_route_of_a_topic_that_was_just_made_is_asked_for_at_once() -> None:
    servers = Servers(**{TEMPLATE: route_at("x")})
    routes = routes_of(servers)
    routes.start()
    await routes.queues_to_publish("orders")
    servers.routes["orders"] = route_at("x", queues=1)
    await until(lambda: routes.queues_to_subscribe("orders") is not None)
    assert await routes.queues_to_publish("orders") == [MessageQueue("orders", "x", 0)]
    await routes.stop()


@pytest.mark.parametrize("forgot", [False, True], ids=["away", "forgot all"])
async def test_what_the_background_learned_serves_the_first_messages_whatever_becomes_of_name_servers(forgot: bool) -> None:
    servers = Servers(orders=route_at("x", queues=1), **{TEMPLATE: route_at("x", queues=2)})
    routes = routes_of(servers)
    for topic in ("orders", TEMPLATE):
        await routes.refresh(topic)
    servers.is_up = forgot
    servers.routes.clear()
    assert [len(await routes.queues_to_publish(topic)) for topic in ("orders", "cancellations")] == [1, 2]


async def test_a_topic_that_is_not_known_has_no_queues_yet() -> None:
    routes = routes_of(Servers())
    assert not await routes.refresh("orders")
    assert routes.queues_to_subscribe("orders") is None
    with pytest.raises(NoRoute, match="no broker has topic orders"):
        await routes.refresh_if_unknown("orders")


async def test_several_that_want_a_route_at_once_ask_once() -> None:
    servers = Servers(orders=route_at("x"))
    servers.gate = asyncio.Event()
    routes = routes_of(servers)
    wanting = [asyncio.ensure_future(routes.refresh("orders")) for _ in range(5)]
    await until(lambda: len(servers.asked) == 1)
    wanting[0].cancel()
    servers.gate.set()
    assert await asyncio.gather(*wanting[1:]) == [True] * 4
    assert servers.asked == ["orders"]


async def test_a_change_is_told_and_a_repetition_is_not() -> None:
    servers = Servers(orders=route_at("x"))
    routes, changes = routes_of(servers), list[int]()
    routes.on_change = lambda: changes.append(1)
    for route in (route_at("x"), route_at("x"), route_at("x", "y")):
        servers.routes["orders"] = route
        await routes.refresh("orders")
    assert len(changes) == 2
    assert set(routes.brokers) == {"x", "y"}


async def test_an_elected_master_is_found_although_the_route_of_a_deleted_topic_has_the_old_one() -> None:
    servers = Servers(orders=route_at("x"), deleted=route_at("x"))
    routes = routes_of(servers)
    for topic in ("orders", "deleted"):
        assert await routes.refresh(topic)
    elected = BrokerData("c", "x", {0: "slave:1"})
    servers.routes = {"orders": TopicRouteData(servers.routes["orders"].queue_datas, [elected])}
    for topic in ("orders", "deleted"):
        assert await routes.refresh(topic)
    assert await routes.address_of("x") == "slave:1"
    assert routes.masters == ["slave:1"]


async def test_a_broker_that_nobody_knows_is_looked_for_once_more() -> None:
    servers = Servers()
    routes = routes_of(servers)
    routes.watch("orders")
    with pytest.raises(BrokerUnreachable, match="broker x has no address at any name server: it is down or not registered"):
        await routes.address_of("x")
    servers.routes["orders"] = route_at("x")
    assert await routes.address_of("x") == "x:1"


async def test_a_slave_stands_in_where_any_will_do() -> None:
    slave_only = TopicRouteData(queue_datas=[QueueData("x", 1, 1, 6)], broker_datas=[BrokerData("c", "x", {1: "slave:1"})])
    routes = routes_of(Servers(orders=slave_only))
    await routes.refresh("orders")
    assert await routes.address_of("x", or_any=True) == "slave:1"
    assert await routes.address_of("x", 1) == "slave:1"
    with pytest.raises(BrokerUnreachable):
        await routes.address_of("x")


async def test_queues_without_end_are_refused() -> None:
    routes = routes_of(Servers(orders=route_at("x", queues=10**9)))
    with pytest.raises(NoRoute, match="correct the topic's settings"):
        await routes.queues_to_publish("orders")


async def test_the_log_says_once_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    servers = Servers()
    routes = routes_of(servers)
    routes.watch("orders")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert await routes._refresh(["orders"]) == ["orders"]
        servers.is_up = False
        for _ in range(3):
            assert await routes._refresh(["orders"]) == ["orders"]
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "topic orders does not exist yet; retrying every 2 to 10 s",
        "no name server answers; retrying every 2 to 10 s",
    ]


async def test_retry_topics_and_the_template_are_not_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    routes = routes_of(Servers())
    for topic in ("%RETRY%group", TEMPLATE):
        routes.watch(topic)
    await routes._refresh(["%RETRY%group", TEMPLATE])
    assert not caplog.records


async def test_brokers_that_create_no_topics_are_known_from_the_cluster() -> None:
    servers = Servers()
    servers.cluster = ClusterInfo(broker_addr_table={"x": BrokerData("c", "x", {0: "x:1"})})
    routes = routes_of(servers)
    routes.watch(TEMPLATE)
    assert await routes._refresh([TEMPLATE]) == []
    assert routes.brokers == {"x": {0: "x:1"}}


async def test_a_client_that_waits_for_a_topic_learns_of_the_brokers() -> None:
    servers = Servers()
    servers.cluster = ClusterInfo(broker_addr_table={"x": BrokerData("c", "x", {0: "x:1"})})
    routes, changes = routes_of(servers), list[dict[str, object]]()
    routes.on_change = lambda: changes.append(dict(routes.brokers))
    routes.watch("orders")
    assert await routes._refresh(["orders"]) == ["orders"]
    assert await routes._refresh(["orders"]) == ["orders"]
    assert changes == [{"x": {0: "x:1"}}]


def test_a_missing_topic_is_looked_for_at_once_when_a_broker_says_that_something_changed() -> None:
    servers = Servers(orders=route_at("x"))

    async def work(virtual: VirtualTime) -> None:
        routes = routes_of(servers)
        for topic in ("orders", "payments"):
            routes.watch(topic)
        routes.start()
        await virtual.advance(7)
        servers.routes["payments"] = route_at("x")
        servers.asked.clear()
        routes.look_for_missing()
        await virtual.advance(0)
        assert servers.asked == ["payments"]
        routes.look_for_missing()
        await virtual.advance(1)
        assert servers.asked == ["payments"], "none is missing now"
        await routes.stop()

    in_virtual_time(work)


def test_several_reports_of_a_broker_that_went_away_update_all_routes_once() -> None:
    servers = Servers(orders=route_at("x"), payments=route_at("x"))

    async def work(virtual: VirtualTime) -> None:
        routes = routes_of(servers)
        for topic in ("orders", "payments"):
            routes.watch(topic)
        routes.start()
        await virtual.advance(1)
        servers.asked.clear()
        routes.refresh_soon()
        await virtual.advance(0)
        assert servers.asked == [], "others may report the broker, too"
        routes.refresh_soon()
        await virtual.advance(7)
        assert sorted(servers.asked) == ["orders", "payments"]
        await routes.stop()

    in_virtual_time(work)


async def test_in_the_background_routes_are_fetched_until_the_stop() -> None:
    servers, errors = Servers(orders=route_at("x")), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    routes = routes_of(servers)
    routes.watch("orders")
    routes.start()
    await until(lambda: routes.queues_to_subscribe("orders") is not None)
    servers.gate = asyncio.Event()
    hanging = asyncio.ensure_future(routes.refresh("payments"))
    await until(lambda: "payments" in servers.asked)
    await routes.stop()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert errors == []


def test_a_topic_that_nobody_knows_is_asked_for_often_and_the_known_ones_are_not() -> None:
    servers = Servers(orders=route_at("x"))

    async def work(virtual: VirtualTime) -> None:
        routes = routes_of(servers)
        for topic in ("orders", "payments"):
            routes.watch(topic)
        routes.start()
        await virtual.advance(59)
        assert servers.asked.count("orders") == 2
        assert servers.asked.count("payments") > 20
        servers.routes["payments"] = route_at("x")
        await virtual.advance(4)
        assert routes.queues_to_subscribe("payments") is not None
        servers.asked.clear()
        servers.is_up = False
        await virtual.advance(58)
        assert servers.asked.count("orders") > 10
        await routes.stop()

    in_virtual_time(work)
