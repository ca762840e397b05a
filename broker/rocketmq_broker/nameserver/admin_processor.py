"""Handles operators' requests to a name server, and about its settings (part of RocketMQ's DefaultRequestProcessor)."""

from collections.abc import Callable, Mapping
from typing import Final

from rocketmq_broker.message import permissions
from rocketmq_broker.nameserver.kv_config import KVConfig
from rocketmq_broker.nameserver.routes import RouteTable
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.bodies.route import QueueData
from rocketmq_broker.protocol.bodies.topic import TopicList
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.name_server import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    DeleteKVConfigRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    GetTopicsByClusterRequestHeader,
    PutKVConfigRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused, Steps
from rocketmq_broker.remoting.long_tables import list_in_steps

NAMES_AT_ONCE: Final = 1000
"""The number of topic names that are encoded in one step, which takes 0.5 ms."""


class AdminProcessor:
    """Handles requests for topic lists, brokers' write permission, and the KV config."""

    def __init__(self, routes: RouteTable, kv_config: KVConfig) -> None:
        self._routes = routes
        self._kv_config = kv_config

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers, keyed by request code."""
        return {
            RequestCode.PUT_KV_CONFIG: self.put_kv_config,
            RequestCode.GET_KV_CONFIG: self.get_kv_config,
            RequestCode.DELETE_KV_CONFIG: self.delete_kv_config,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self.get_kv_list,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self.get_all_topics,
            RequestCode.GET_TOPICS_BY_CLUSTER: self.get_topics_by_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self.get_system_topics,
            RequestCode.GET_UNIT_TOPIC_LIST: self.get_unit_topics,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self.get_unit_subscription_topics,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self.get_unit_subscription_of_no_unit_topics,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self.delete_topic,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self.wipe_write_permission,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self.add_write_permission,
        }

    def put_kv_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Sets a value of the KV config."""
        header = command.decode_header(PutKVConfigRequestHeader)
        self._kv_config.put(header.namespace, header.key, header.value)
        return encode_response(command, ResponseCode.SUCCESS)

    def get_kv_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with a value of the KV config."""
        header = command.decode_header(GetKVConfigRequestHeader)
        value = self._kv_config.get(header.namespace, header.key)
        if value is None:
            remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
            raise RequestRefused(ResponseCode.QUERY_NOT_FOUND, remark)
        return encode_response(command, ResponseCode.SUCCESS, GetKVConfigResponseHeader(value=value))

    def delete_kv_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Deletes a value of the KV config."""
        header = command.decode_header(DeleteKVConfigRequestHeader)
        self._kv_config.delete(header.namespace, header.key)
        return encode_response(command, ResponseCode.SUCCESS)

    def get_kv_list(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with all values of a namespace of the KV config."""
        header = command.decode_header(GetKVListByNamespaceRequestHeader)
        values = self._kv_config.namespace(header.namespace)
        if values is None:
            raise RequestRefused(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {header.namespace}")
        return encode_response(command, ResponseCode.SUCCESS, body=KVTable(table=values).encode())

    def get_all_topics(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with all topics."""
        return _topics(command, self._routes.topics())

    def get_topics_by_cluster(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the topics of one cluster."""
        header = command.decode_header(GetTopicsByClusterRequestHeader)
        return _topics(command, self._routes.topics_of_cluster(header.cluster))

    def get_system_topics(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the names of all clusters and brokers, which are system topics.

        The response also contains the address of a broker, which can list the remaining system topics.
        """
        return _topics(command, self._routes.cluster_and_broker_names(), self._routes.any_broker_address())

    def get_unit_topics(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the topics of units."""
        return _topics(command, self._routes.topics_where(_is_unit))

    def get_unit_subscription_topics(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the topics to which units subscribe."""
        return _topics(command, self._routes.topics_where(_has_unit_subscription))

    def get_unit_subscription_of_no_unit_topics(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the topics to which units subscribe, but which do not belong to a unit."""
        found = self._routes.topics_where(
            lambda queues: _has_unit_subscription(queues) and not queues.topic_sys_flag & permissions.UNIT
        )
        return _topics(command, found)

    def delete_topic(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Deletes a topic."""
        header = command.decode_header(DeleteTopicFromNamesrvRequestHeader)
        self._routes.delete_topic(header.topic, header.cluster_name)
        return encode_response(command, ResponseCode.SUCCESS)

    def wipe_write_permission(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Removes the write permission of a broker's topics."""
        header = command.decode_header(WipeWritePermOfBrokerRequestHeader)
        count = self._routes.set_writeable(header.broker_name, is_writeable=False)
        return encode_response(command, ResponseCode.SUCCESS, WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count))

    def add_write_permission(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Restores the write permission of a broker's topics."""
        header = command.decode_header(AddWritePermOfBrokerRequestHeader)
        count = self._routes.set_writeable(header.broker_name, is_writeable=True)
        return encode_response(command, ResponseCode.SUCCESS, AddWritePermOfBrokerResponseHeader(add_topic_count=count))


def _topics(command: RemotingCommand, names: list[str], broker_address: str | None = None) -> Steps:
    body = yield from list_in_steps(
        names,
        lambda part: TopicList(topic_list=part, broker_addr=broker_address).encode(),
        at_once=NAMES_AT_ONCE,
        advice="ask for the topics of one cluster",
    )
    return encode_response(command, ResponseCode.SUCCESS, body=body)


def _is_unit(queues: QueueData) -> bool:
    return bool(queues.topic_sys_flag & permissions.UNIT)


def _has_unit_subscription(queues: QueueData) -> bool:
    return bool(queues.topic_sys_flag & permissions.UNIT_SUBSCRIPTION)


class ConfigProcessor:
    """Handles requests about the settings, with RocketMQ's names. Settings cannot be changed while the name server runs."""

    def __init__(self, settings: Callable[[], Mapping[str, str]]) -> None:
        self._settings = settings

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers, keyed by request code."""
        return {
            RequestCode.GET_NAMESRV_CONFIG: self.get_config,
            RequestCode.UPDATE_NAMESRV_CONFIG: self.update_config,
        }

    def get_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with all settings, one on each line."""
        lines = "".join(f"{name}={value}\n" for name, value in self._settings().items())
        return encode_response(command, ResponseCode.SUCCESS, body=lines.encode())

    def update_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Refuses the change. RocketMQ's name server would respond with SUCCESS."""
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            "settings of this name server cannot be changed while it runs: change its settings file and restart it",
        )
