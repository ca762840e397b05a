"""Tests the name server's responses, as frames."""

import zlib

import pytest

from rocketmq_broker.message import permissions
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.nameserver.admin_processor import AdminProcessor
from rocketmq_broker.nameserver.kv_config import ORDER_TOPIC_CONFIG, KVConfig
from rocketmq_broker.nameserver.route_processor import RouteProcessor
from rocketmq_broker.nameserver.routes import RouteTable
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.bodies.register_broker import RegisterBrokerBody
from rocketmq_broker.protocol.bodies.route import ClusterInfo, TopicRouteData
from rocketmq_broker.protocol.bodies.topic import DataVersion, TopicConfigSerializeWrapper, TopicList
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.name_server import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    DeleteKVConfigRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
    PutKVConfigRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from rocketmq_broker.remoting.dispatcher import Dispatcher

BODY = RegisterBrokerBody(
    topic_config_serialize_wrapper=TopicConfigSerializeWrapper(
        topic_config_table={"orders": TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4)},
        data_version=DataVersion(timestamp=7, counter=3),
    )
)


class Wire:
    """A replacement for a connection, which decodes the sent frames."""

    peer = "127.0.0.1:5555"
    must_rest = False

    def __init__(self) -> None:
        self.answers: list[RemotingCommand] = []

    def send(self, frame: bytes) -> None:
        self.answers += FrameDecoder().feed(frame)


class Desk:
    """A name server's processors, which receive requests as frames."""

    def __init__(self) -> None:
        self.kv_config = KVConfig(None)
        routes = RouteTable()
        self.dispatcher = Dispatcher()
        self.dispatcher.add(RouteProcessor(routes, self.kv_config, lambda: 1).handlers)
        self.dispatcher.add(AdminProcessor(routes, self.kv_config).handlers)

    def ask(
        self, code: int, header: CommandHeader | None = None, body: bytes = b"", version: int | None = None
    ) -> RemotingCommand:
        (command,) = FrameDecoder().feed(encode_request(code, header, body, opaque=9))
        if version is not None:
            command.version = version
        wire = Wire()
        self.dispatcher.on_requests(wire, [command])
        (answer,) = wire.answers
        assert answer.opaque == 9
        return answer

    def register(self, body: bytes, **fields: object) -> RemotingCommand:
        header = RegisterBrokerRequestHeader(
            broker_name="broker-a", broker_addr="127.0.0.1:10911", cluster_name="c", ha_server_addr="", broker_id=0, **fields
        )
        return self.ask(RequestCode.REGISTER_BROKER, header, body)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_registered_broker_is_found_by_topic(desk: Desk) -> None:
    assert desk.register(BODY.encode()).code == ResponseCode.SUCCESS
    answer = desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic="orders"))
    assert TopicRouteData.decode(answer.body).broker_datas[0].broker_addrs == {0: "127.0.0.1:10911"}


def test_a_compressed_registration_says_the_same(desk: Desk) -> None:
    body = BODY.encode_compressed()
    crc = zlib.crc32(body) & 0x7FFFFFFF
    assert desk.register(body, compressed=True, body_crc32=crc).code == ResponseCode.SUCCESS
    answer = desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic="orders"))
    assert answer.code == ResponseCode.SUCCESS


def test_a_registration_with_a_wrong_checksum_is_refused(desk: Desk) -> None:
    answer = desk.register(BODY.encode(), body_crc32=1)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")


def test_a_body_that_is_none_is_answered_not_dropped(desk: Desk) -> None:
    assert desk.register(b"\x00nonsense").code == ResponseCode.SYSTEM_ERROR
    assert desk.register(b"nonsense", compressed=True).code == ResponseCode.SYSTEM_ERROR


def test_a_broker_is_told_which_topics_are_ordered(desk: Desk) -> None:
    desk.kv_config.put(ORDER_TOPIC_CONFIG, "orders", "broker-a:4")
    assert KVTable.decode(desk.register(BODY.encode()).body).table == {"orders": "broker-a:4"}


def test_old_clients_get_unquoted_broker_ids_and_new_ones_standard_json(desk: Desk) -> None:
    desk.register(BODY.encode())
    header = GetRouteInfoRequestHeader(topic="orders")
    assert b'{0:"127' in desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, version=373).body
    assert b'{"0":"127' in desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, version=407).body


def test_an_unknown_topic_is_said_to_be_unknown(desk: Desk) -> None:
    answer = desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic="nowhere"))
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST
    assert "nowhere" in (answer.remark or "")


def test_a_broker_learns_whether_its_topics_are_known(desk: Desk) -> None:
    header = QueryDataVersionRequestHeader(broker_name="broker-a", broker_addr="127.0.0.1:10911", cluster_name="c", broker_id=0)
    known = DataVersion(timestamp=7, counter=3).encode()

    def is_changed(body: bytes) -> bool:
        answer = desk.ask(RequestCode.QUERY_DATA_VERSION, header, body)
        return answer.decode_header(QueryDataVersionResponseHeader).changed

    assert is_changed(known)
    desk.register(BODY.encode())
    assert not is_changed(known)
    assert is_changed(DataVersion(timestamp=7, counter=4).encode())


def test_lists_for_operators(desk: Desk) -> None:
    desk.register(BODY.encode())
    topics = desk.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER).body
    assert TopicList.decode(topics).topic_list == ["orders"]
    system = TopicList.decode(desk.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS).body)
    assert (system.topic_list, system.broker_addr) == (["c", "broker-a"], "127.0.0.1:10911")
    assert ClusterInfo.decode(desk.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body).cluster_addr_table == {"c": ["broker-a"]}


def test_kv_config_is_put_and_got(desk: Desk) -> None:
    desk.ask(RequestCode.PUT_KV_CONFIG, PutKVConfigRequestHeader(namespace="n", key="k", value="v"))
    answer = desk.ask(RequestCode.GET_KV_CONFIG, GetKVConfigRequestHeader(namespace="n", key="k"))
    assert answer.decode_header(GetKVConfigResponseHeader).value == "v"
    missing = desk.ask(RequestCode.GET_KV_CONFIG, GetKVConfigRequestHeader(namespace="n", key="other"))
    assert missing.code == ResponseCode.QUERY_NOT_FOUND


def test_a_namespace_is_listed_and_a_value_deleted(desk: Desk) -> None:
    for key in ("orders", "credits"):
        put = PutKVConfigRequestHeader(namespace="space", key=key, value=f"broker-a:{key}")
        assert desk.ask(RequestCode.PUT_KV_CONFIG, put).code == ResponseCode.SUCCESS
    wanted = GetKVListByNamespaceRequestHeader(namespace="space")
    listed = desk.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, wanted)
    assert KVTable.decode(listed.body).table == {"orders": "broker-a:orders", "credits": "broker-a:credits"}
    deleted = desk.ask(RequestCode.DELETE_KV_CONFIG, DeleteKVConfigRequestHeader(namespace="space", key="orders"))
    assert deleted.code == ResponseCode.SUCCESS
    assert KVTable.decode(desk.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, wanted).body).table == {"credits": "broker-a:credits"}


def test_what_nobody_put_is_said_to_be_unknown(desk: Desk) -> None:
    value = desk.ask(RequestCode.GET_KV_CONFIG, GetKVConfigRequestHeader(namespace="space", key="orders"))
    assert (value.code, value.remark) == (ResponseCode.QUERY_NOT_FOUND, "No config item, Namespace: space Key: orders")
    listed = desk.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, GetKVListByNamespaceRequestHeader(namespace="space"))
    assert (listed.code, listed.remark) == (ResponseCode.QUERY_NOT_FOUND, "No config item, Namespace: space")


def test_the_topics_of_a_cluster_are_its_own_and_clusters_and_brokers_are_topics_of_the_system(desk: Desk) -> None:
    desk.register(BODY.encode())
    for cluster, topics in (("c", ["orders"]), ("another", [])):
        answer = desk.ask(RequestCode.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterRequestHeader(cluster=cluster))
        assert TopicList.decode(answer.body).topic_list == topics
    own = TopicList.decode(desk.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS).body)
    assert (own.topic_list, own.broker_addr) == (["c", "broker-a"], "127.0.0.1:10911")


def test_topics_of_units_are_told_from_others(desk: Desk) -> None:
    flags = {"plain": 0, "unit": permissions.UNIT, "heard": permissions.UNIT_SUBSCRIPTION}
    flags["both"] = permissions.UNIT | permissions.UNIT_SUBSCRIPTION
    table = {name: TopicConfig(topic_name=name, topic_sys_flag=flag) for name, flag in flags.items()}
    wrapper = TopicConfigSerializeWrapper(topic_config_table=table, data_version=DataVersion(timestamp=1, counter=1))
    desk.register(RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode())
    for code, names in (
        (RequestCode.GET_UNIT_TOPIC_LIST, ["unit", "both"]),
        (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, ["heard", "both"]),
        (RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, ["heard"]),
    ):
        assert TopicList.decode(desk.ask(code).body).topic_list == names


def test_a_deleted_topic_has_no_route_and_in_another_cluster_it_stays(desk: Desk) -> None:
    desk.register(BODY.encode())
    wanted = GetRouteInfoRequestHeader(topic="orders")
    for cluster, code in (("another", ResponseCode.SUCCESS), ("c", ResponseCode.TOPIC_NOT_EXIST)):
        header = DeleteTopicFromNamesrvRequestHeader(topic="orders", cluster_name=cluster)
        assert desk.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, header).code == ResponseCode.SUCCESS
        assert desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, wanted).code == code


def test_a_broker_that_was_closed_to_messages_is_opened_again(desk: Desk) -> None:
    desk.register(BODY.encode())
    wiped = desk.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, WipeWritePermOfBrokerRequestHeader(broker_name="broker-a"))
    assert wiped.decode_header(WipeWritePermOfBrokerResponseHeader).wipe_topic_count == 1
    answer = desk.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, AddWritePermOfBrokerRequestHeader(broker_name="broker-a"))
    assert answer.decode_header(AddWritePermOfBrokerResponseHeader).add_topic_count == 1
    route = desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic="orders"))
    assert [queues.perm for queues in TopicRouteData.decode(route.body).queue_datas] == [permissions.READ_AND_WRITE]
    unknown = desk.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, AddWritePermOfBrokerRequestHeader(broker_name="nobody"))
    assert unknown.decode_header(AddWritePermOfBrokerResponseHeader).add_topic_count == 0


def test_an_unknown_code_gets_apaches_remark(desk: Desk) -> None:
    answer = desk.ask(9999)
    assert (answer.code, answer.remark) == (3, " request type 9999 not supported")


def test_a_missing_field_is_named(desk: Desk) -> None:
    answer = desk.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "the custom field <topic> is null")


def test_a_long_registration_is_read_in_steps_and_has_a_limit(desk: Desk) -> None:
    def body(topics: int) -> RegisterBrokerBody:
        table = {f"topic-{number}": TopicConfig(topic_name=f"topic-{number}") for number in range(topics)}
        return RegisterBrokerBody(topic_config_serialize_wrapper=TopicConfigSerializeWrapper(topic_config_table=table))

    assert desk.register(body(60_000).encode_compressed(), compressed=True).code == ResponseCode.SUCCESS
    topics = TopicList.decode(desk.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER).body).topic_list
    assert len(topics) == 60_000
    assert "65537, at most 65536" in (desk.register(body(65_537).encode_compressed(), compressed=True).remark or "")
    assert "set compressedRegister=true" in (desk.register(body(60_000).encode()).remark or "")
