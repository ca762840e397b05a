"""Tests the name server's table of brokers and topics."""

from collections.abc import Sequence

import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.steps import finish
from rocketmq_broker.nameserver import limits, live_brokers
from rocketmq_broker.nameserver.live_brokers import BROKER_EXPIRES_MS, BROKER_HOLDS_NAME_MS
from rocketmq_broker.nameserver.routes import BrokerRegistration, Master, RouteTable
from rocketmq_broker.protocol.bodies.topic import DataVersion, TopicConfigSerializeWrapper
from rocketmq_broker.remoting.dispatcher import RequestRefused

NOW_MS = 1_700_000_000_000


def topics(*names: str, counter: int = 1, queues: int = 4, sys_flag: int = 0) -> TopicConfigSerializeWrapper:
    table = {
        name: TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, topic_sys_flag=sys_flag)
        for name in names
    }
    return TopicConfigSerializeWrapper(topic_config_table=table, data_version=DataVersion(timestamp=1, counter=counter))


def register(
    routes: RouteTable,
    registered: TopicConfigSerializeWrapper,
    *,
    name: str = "broker-a",
    broker_id: int = 0,
    address: str = "127.0.0.1:10911",
    connection: object = "connection",
    cluster: str = "c",
    now_ms: int = NOW_MS,
    filter_servers: Sequence[str] = (),
) -> Master:
    registration = BrokerRegistration(
        cluster=cluster,
        name=name,
        broker_id=broker_id,
        address=address,
        ha_address=f"{address}0",
        topics=registered,
        filter_servers=list(filter_servers),
    )
    return finish(routes.register(connection, registration, now_ms))


def unregister(routes: RouteTable, *, name: str, broker_id: int, address: str, connection: object = "connection") -> None:
    routes.unregister(connection, name=name, broker_id=broker_id, address=address, now_ms=NOW_MS)


def test_a_registered_topic_has_a_route_to_its_broker() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    route = routes.route("orders")
    assert route is not None
    assert [queues.broker_name for queues in route.queue_datas] == ["broker-a"]
    assert route.queue_datas[0].write_queue_nums == 4
    assert route.broker_datas[0].broker_addrs == {0: "127.0.0.1:10911"}


def test_an_unknown_topic_has_no_route() -> None:
    assert RouteTable().route("orders") is None


def test_topics_are_taken_over_only_when_their_version_changed() -> None:
    routes = RouteTable()
    register(routes, topics("orders", counter=1))
    register(routes, topics("credits", counter=1))
    assert routes.topics() == ["orders"]
    register(routes, topics("orders", "credits", counter=2))
    assert routes.topics() == ["orders", "credits"]


def test_two_brokers_share_a_topic_until_one_leaves() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    register(routes, topics("orders"), name="broker-b", address="127.0.0.1:20911")
    unregister(routes, name="broker-a", broker_id=0, address="127.0.0.1:10911")
    route = routes.route("orders")
    assert route is not None
    assert [broker.broker_name for broker in route.broker_datas] == ["broker-b"]
    unregister(routes, name="broker-b", broker_id=0, address="127.0.0.1:20911")
    assert routes.topics() == []
    assert routes.cluster_info().cluster_addr_table == {}


def test_a_slave_is_told_its_master_and_adds_no_topics() -> None:
    routes = RouteTable()
    assert register(routes, topics("orders")) == Master()
    told = register(routes, topics("other"), broker_id=1, address="127.0.0.1:10921")
    assert told == Master("127.0.0.1:10911", "127.0.0.1:109110")
    assert routes.topics() == ["orders"]
    route = routes.route("orders")
    assert route is not None
    assert route.broker_datas[0].broker_addrs == {0: "127.0.0.1:10911", 1: "127.0.0.1:10921"}


def test_a_slave_that_becomes_master_is_listed_once() -> None:
    routes = RouteTable()
    register(routes, topics("orders"), broker_id=1)
    register(routes, topics("orders"), broker_id=0)
    assert routes.cluster_info().broker_addr_table["broker-a"].broker_addrs == {0: "127.0.0.1:10911"}


def test_a_silent_broker_is_forgotten_after_two_minutes() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    assert routes.expire(NOW_MS + BROKER_EXPIRES_MS) == []
    assert routes.expire(NOW_MS + BROKER_EXPIRES_MS + 1) == ["127.0.0.1:10911"]
    assert routes.route("orders") is None


def test_a_broker_that_renews_is_not_silent() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    routes.renew("127.0.0.1:10911", NOW_MS + BROKER_EXPIRES_MS)
    assert routes.expire(NOW_MS + 2 * BROKER_EXPIRES_MS) == []


def test_a_closed_connection_takes_its_broker_away() -> None:
    routes = RouteTable()
    register(routes, topics("orders"), connection="one")
    register(routes, topics("credits"), name="broker-b", address="127.0.0.1:20911", connection="two")
    routes.forget("one")
    assert routes.topics() == ["credits"]


def test_a_broker_that_registered_by_a_new_connection_stays_when_the_old_one_closes() -> None:
    routes = RouteTable()
    register(routes, topics("orders"), connection="old")
    register(routes, topics("orders"), connection="new")
    routes.forget("old")
    assert routes.topics() == ["orders"]


def test_a_topic_can_be_deleted_in_one_cluster_alone() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    register(routes, topics("orders"), name="broker-b", address="127.0.0.1:20911", cluster="d")
    routes.delete_topic("orders", "c")
    route = routes.route("orders")
    assert route is not None
    assert [queues.broker_name for queues in route.queue_datas] == ["broker-b"]
    assert routes.topics_of_cluster("c") == []
    routes.delete_topic("orders")
    assert routes.topics() == []


def test_write_permission_is_taken_and_given_back() -> None:
    routes = RouteTable()
    register(routes, topics("orders", "credits"))
    assert routes.set_writeable("broker-a", is_writeable=False) == 2
    route = routes.route("orders")
    assert route is not None
    assert route.queue_datas[0].perm == 4
    assert routes.set_writeable("broker-a", is_writeable=True) == 2
    assert route.queue_datas[0].perm == 6


def test_topics_are_found_by_their_flag() -> None:
    routes = RouteTable()
    register(routes, topics("units", sys_flag=1))
    assert routes.topics_where(lambda queues: queues.topic_sys_flag == 1) == ["units"]
    assert routes.topics_where(lambda queues: queues.topic_sys_flag == 2) == []


STRANGER = "10.0.0.66:10911"


def addresses(routes: RouteTable) -> dict[int, str]:
    return routes.cluster_info().broker_addr_table["broker-a"].broker_addrs


def test_a_stranger_with_a_brokers_name_is_refused_and_named(caplog: pytest.LogCaptureFixture) -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    with pytest.raises(RequestRefused, match=r"is already registered at 127\.0\.0\.1:10911"):
        register(routes, topics("forged"), address=STRANGER, connection="stranger")
    assert addresses(routes) == {0: "127.0.0.1:10911"}
    assert routes.topics() == ["orders"]
    with pytest.raises(RequestRefused):
        register(routes, topics("forged"), address="10.0.0.67:10911", connection="stranger")
    assert caplog.text.count("to register as broker 'broker-a'") == 1


def test_a_broker_that_starts_at_a_new_address_takes_its_name_along_once_its_old_connection_ended() -> None:
    routes = RouteTable()
    register(routes, topics("orders"), connection="old")
    routes.forget("old")
    register(routes, topics("orders"), address=STRANGER, connection="new")
    assert addresses(routes) == {0: STRANGER}


def test_a_broker_whose_machine_died_is_replaced_when_it_has_missed_its_registrations(caplog: pytest.LogCaptureFixture) -> None:
    routes = RouteTable()
    register(routes, topics("orders"), connection="dead")
    register(routes, topics("orders"), address=STRANGER, connection="new", now_ms=NOW_MS + BROKER_HOLDS_NAME_MS + 1)
    assert addresses(routes) == {0: STRANGER}
    assert "moved from '127.0.0.1:10911' to '10.0.0.66:10911'" in caplog.text
    routes.forget("dead")
    assert addresses(routes) == {0: STRANGER}


def test_a_broker_may_change_its_address_by_the_connection_that_it_has() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    register(routes, topics("orders"), address=STRANGER)
    assert addresses(routes) == {0: STRANGER}


def test_a_slave_takes_its_dead_masters_place() -> None:
    routes = RouteTable()
    register(routes, topics("orders"), connection="master")
    register(routes, topics("orders"), broker_id=1, address="127.0.0.1:10921", connection="slave")
    routes.forget("master")
    register(routes, topics("orders"), broker_id=0, address="127.0.0.1:10921", connection="slave")
    assert addresses(routes) == {0: "127.0.0.1:10921"}


def test_the_address_of_a_broker_is_not_given_to_another_name() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    with pytest.raises(RequestRefused, match="is already registered by broker broker-a"):
        register(routes, topics("forged"), name="broker-x", connection="stranger")
    routes.forget("stranger")
    assert routes.topics() == ["orders"]


def test_who_registers_under_a_brokers_name_and_address_and_hangs_up_does_not_take_it_away() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    register(routes, topics("orders"), connection="stranger")
    routes.forget("stranger")
    assert routes.topics() == ["orders"]
    routes.forget("connection")
    assert routes.topics() == []


def test_only_the_broker_itself_says_goodbye() -> None:
    routes = RouteTable()
    register(routes, topics("orders"))
    with pytest.raises(RequestRefused, match="registered by another connection"):
        unregister(routes, name="broker-a", broker_id=0, address="127.0.0.1:10911", connection="stranger")
    assert routes.topics() == ["orders"]


def test_brokers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_brokers, "MAX_BROKERS", 2)
    routes = RouteTable()
    for number in range(2):
        register(routes, topics("orders"), name=f"broker-{number}", address=f"127.0.0.1:{number}")
    with pytest.raises(RequestRefused, match="too many brokers: at most 2"):
        register(routes, topics("orders"), name="broker-2", address="127.0.0.1:2")
    register(routes, topics("orders"), name="broker-1", address="127.0.0.1:1")
    assert set(routes.cluster_info().broker_addr_table) == {"broker-0", "broker-1"}


def test_topics_are_bounded_for_a_broker_and_over_all(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(limits, "MAX_TOPICS_OF_A_BROKER", 3)
    monkeypatch.setattr(limits, "MAX_ENTRIES", 4)
    routes = RouteTable()
    register(routes, topics("a", "b", "c", "d"))
    register(routes, topics("a", "e", counter=2), name="broker-b", address="127.0.0.1:20911", connection="b")
    assert routes.topics() == ["a", "b", "c"]
    assert "ignored 1 topics of broker 'broker-a'" in caplog.text


def test_a_topic_with_billions_of_queues_is_left_out_and_the_others_are_not() -> None:
    routes = RouteTable()
    registered = topics("orders", queues=2**31 - 1)
    registered.topic_config_table |= topics("credits").topic_config_table
    register(routes, registered)
    assert routes.topics() == ["credits"]


def test_filter_servers_and_names_are_bounded() -> None:
    with pytest.raises(RequestRefused, match="too many filter servers in a registration: 17, at most 16"):
        register(RouteTable(), topics("orders"), filter_servers=["127.0.0.1:1"] * 17)
    with pytest.raises(RequestRefused, match="at most 255 characters"):
        register(RouteTable(), topics("orders"), name="b" * 256)


def test_a_registration_that_breaks_off_is_not_taken_for_whole() -> None:
    routes = RouteTable()
    wrapper = topics(*(f"topic-{number}" for number in range(2000)))
    registration = BrokerRegistration(
        cluster="c", name="broker-a", broker_id=0, address="127.0.0.1:10911", ha_address="", topics=wrapper, filter_servers=[]
    )
    steps = routes.register("first", registration, NOW_MS)
    for _ in range(3):
        next(steps)
    steps.close()
    finish(routes.register("second", registration, NOW_MS))
    assert len(routes.topics()) == 2000


@pytest.mark.parametrize(("connection", "later_ms"), [("connection", 0), ("another", BROKER_HOLDS_NAME_MS + 1)])
def test_a_broker_with_another_name_is_not_known_by_its_former_one(connection: str, later_ms: int) -> None:
    routes = RouteTable()
    register(routes, topics("orders", counter=1), name="broker-a")
    register(routes, topics("credits", counter=1), name="broker-b", connection=connection, now_ms=NOW_MS + later_ms)
    assert list(routes.cluster_info().broker_addr_table) == ["broker-b"]
    assert routes.topics() == ["credits"]
    assert routes.route("orders") is None
    routes.forget(connection)
    assert routes.cluster_info().broker_addr_table == {}


def test_a_slave_of_the_former_name_stays() -> None:
    routes = RouteTable()
    register(routes, topics("orders"), name="broker-a")
    register(routes, topics(), name="broker-a", broker_id=1, address="127.0.0.1:20911", connection="slave")
    register(routes, topics("credits"), name="broker-b")
    table = routes.cluster_info().broker_addr_table
    assert {name: dict(broker.broker_addrs) for name, broker in table.items()} == {
        "broker-a": {1: "127.0.0.1:20911"},
        "broker-b": {0: "127.0.0.1:10911"},
    }
