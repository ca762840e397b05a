"""What the name server knows of brokers and topics."""

from broker.nameserver.routes import BROKER_EXPIRES_MS, Master, Routes
from broker.protocol.bodies import DataVersion, TopicConfig, TopicConfigSerializeWrapper

NOW_MS = 1_700_000_000_000


def topics(*names: str, counter: int = 1, queues: int = 4, sys_flag: int = 0) -> TopicConfigSerializeWrapper:
    table = {
        name: TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, topic_sys_flag=sys_flag)
        for name in names
    }
    return TopicConfigSerializeWrapper(topic_config_table=table, data_version=DataVersion(timestamp=1, counter=counter))


def register(
    routes: Routes,
    registered: TopicConfigSerializeWrapper,
    *,
    name: str = "broker-a",
    broker_id: int = 0,
    address: str = "127.0.0.1:10911",
    connection: object = "connection",
    cluster: str = "c",
    now_ms: int = NOW_MS,
) -> Master:
    return routes.register(
        connection,
        cluster=cluster,
        name=name,
        broker_id=broker_id,
        address=address,
        ha_address=f"{address}0",
        topics=registered,
        filter_servers=[],
        now_ms=now_ms,
    )


def test_a_registered_topic_has_a_route_to_its_broker() -> None:
    routes = Routes()
    register(routes, topics("orders"))
    route = routes.route("orders")
    assert route is not None
    assert [queues.broker_name for queues in route.queue_datas] == ["broker-a"]
    assert route.queue_datas[0].write_queue_nums == 4
    assert route.broker_datas[0].broker_addrs == {0: "127.0.0.1:10911"}


def test_an_unknown_topic_has_no_route() -> None:
    assert Routes().route("orders") is None


def test_topics_are_taken_over_only_when_their_version_changed() -> None:
    routes = Routes()
    register(routes, topics("orders", counter=1))
    register(routes, topics("credits", counter=1))
    assert routes.topics() == ["orders"]
    register(routes, topics("orders", "credits", counter=2))
    assert routes.topics() == ["orders", "credits"]


def test_two_brokers_share_a_topic_until_one_leaves() -> None:
    routes = Routes()
    register(routes, topics("orders"))
    register(routes, topics("orders"), name="broker-b", address="127.0.0.1:20911")
    routes.unregister(name="broker-a", broker_id=0, address="127.0.0.1:10911")
    route = routes.route("orders")
    assert route is not None
    assert [broker.broker_name for broker in route.broker_datas] == ["broker-b"]
    routes.unregister(name="broker-b", broker_id=0, address="127.0.0.1:20911")
    assert routes.topics() == []
    assert routes.cluster_info().cluster_addr_table == {}


def test_a_slave_is_told_its_master_and_adds_no_topics() -> None:
    routes = Routes()
    assert register(routes, topics("orders")) == Master()
    told = register(routes, topics("other"), broker_id=1, address="127.0.0.1:10921")
    assert told == Master("127.0.0.1:10911", "127.0.0.1:109110")
    assert routes.topics() == ["orders"]
    route = routes.route("orders")
    assert route is not None
    assert route.broker_datas[0].broker_addrs == {0: "127.0.0.1:10911", 1: "127.0.0.1:10921"}


def test_a_slave_that_becomes_master_is_listed_once() -> None:
    routes = Routes()
    register(routes, topics("orders"), broker_id=1)
    register(routes, topics("orders"), broker_id=0)
    assert routes.cluster_info().broker_addr_table["broker-a"].broker_addrs == {0: "127.0.0.1:10911"}


def test_a_silent_broker_is_forgotten_after_two_minutes() -> None:
    routes = Routes()
    register(routes, topics("orders"))
    assert routes.expire(NOW_MS + BROKER_EXPIRES_MS) == []
    assert routes.expire(NOW_MS + BROKER_EXPIRES_MS + 1) == ["127.0.0.1:10911"]
    assert routes.route("orders") is None


def test_a_broker_that_renews_is_not_silent() -> None:
    routes = Routes()
    register(routes, topics("orders"))
    routes.renew("127.0.0.1:10911", NOW_MS + BROKER_EXPIRES_MS)
    assert routes.expire(NOW_MS + 2 * BROKER_EXPIRES_MS) == []


def test_a_closed_connection_takes_its_broker_away() -> None:
    routes = Routes()
    register(routes, topics("orders"), connection="one")
    register(routes, topics("credits"), name="broker-b", address="127.0.0.1:20911", connection="two")
    routes.forget("one")
    assert routes.topics() == ["credits"]


def test_a_broker_that_registered_by_a_new_connection_stays_when_the_old_one_closes() -> None:
    routes = Routes()
    register(routes, topics("orders"), connection="old")
    register(routes, topics("orders"), connection="new")
    routes.forget("old")
    assert routes.topics() == ["orders"]


def test_a_topic_can_be_deleted_in_one_cluster_alone() -> None:
    routes = Routes()
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
    routes = Routes()
    register(routes, topics("orders", "credits"))
    assert routes.set_writeable("broker-a", is_writeable=False) == 2
    route = routes.route("orders")
    assert route is not None
    assert route.queue_datas[0].perm == 4
    assert routes.set_writeable("broker-a", is_writeable=True) == 2
    assert route.queue_datas[0].perm == 6


def test_topics_are_found_by_their_flag() -> None:
    routes = Routes()
    register(routes, topics("units", sys_flag=1))
    assert routes.topics_where(lambda queues: queues.topic_sys_flag == 1) == ["units"]
    assert routes.topics_where(lambda queues: queues.topic_sys_flag == 2) == []
