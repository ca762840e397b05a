"""Headers of a name server's requests and responses."""

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class GetRouteInfoRequestHeader(CommandHeader):
    """The header of GET_ROUTEINFO_BY_TOPIC."""

    topic: str
    accept_standard_json_only: bool | None = None


class RegisterBrokerRequestHeader(CommandHeader):
    """The header of REGISTER_BROKER."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    compressed: bool = False
    body_crc32: Int32 = 0


class RegisterBrokerResponseHeader(CommandHeader):
    """The header of the response to REGISTER_BROKER, with the addresses of the master."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnRegisterBrokerRequestHeader(CommandHeader):
    """The header of UNREGISTER_BROKER."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionRequestHeader(CommandHeader):
    """The header of QUERY_DATA_VERSION."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionResponseHeader(CommandHeader):
    """The header of the response to QUERY_DATA_VERSION. `changed` is True if the broker must register again."""

    changed: bool


class PutKVConfigRequestHeader(CommandHeader):
    """The header of PUT_KV_CONFIG."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(CommandHeader):
    """The header of GET_KV_CONFIG."""

    namespace: str
    key: str


class GetKVConfigResponseHeader(CommandHeader):
    """The header of the response to GET_KV_CONFIG."""

    value: str | None = None


class DeleteKVConfigRequestHeader(CommandHeader):
    """The header of DELETE_KV_CONFIG."""

    namespace: str
    key: str


class GetKVListByNamespaceRequestHeader(CommandHeader):
    """The header of GET_KVLIST_BY_NAMESPACE."""

    namespace: str


class DeleteTopicFromNamesrvRequestHeader(CommandHeader):
    """The header of DELETE_TOPIC_IN_NAMESRV."""

    topic: str
    cluster_name: str | None = None


class GetTopicsByClusterRequestHeader(CommandHeader):
    """The header of GET_TOPICS_BY_CLUSTER."""

    cluster: str


class WipeWritePermOfBrokerRequestHeader(CommandHeader):
    """The header of WIPE_WRITE_PERM_OF_BROKER."""

    broker_name: str


class WipeWritePermOfBrokerResponseHeader(CommandHeader):
    """The header of the response to WIPE_WRITE_PERM_OF_BROKER, with the number of changed topics."""

    wipe_topic_count: Int32


class AddWritePermOfBrokerRequestHeader(CommandHeader):
    """The header of ADD_WRITE_PERM_OF_BROKER."""

    broker_name: str


class AddWritePermOfBrokerResponseHeader(CommandHeader):
    """The header of the response to ADD_WRITE_PERM_OF_BROKER, with the number of changed topics."""

    add_topic_count: Int32
