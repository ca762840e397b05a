"""Handles brokers' registrations and clients' requests for routes (part of RocketMQ's DefaultRequestProcessor)."""

from collections.abc import Callable, Generator, Mapping
from typing import Final

from rocketmq_broker.message.record import body_crc
from rocketmq_broker.message.steps import finish
from rocketmq_broker.nameserver import limits
from rocketmq_broker.nameserver.kv_config import ORDER_TOPIC_CONFIG, KVConfig
from rocketmq_broker.nameserver.routes import BrokerRegistration, RouteTable
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.bodies.register_broker import RegisterBrokerBody
from rocketmq_broker.protocol.bodies.topic import DataVersion
from rocketmq_broker.protocol.codes import FURTHER_DETAILS, VERSION_4_9_4, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.name_server import (
    GetRouteInfoRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnRegisterBrokerRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Answer, Handler, RequestRefused, Steps

READ_AT_ONCE: Final = 4096
"""The maximum size in bytes of a registration that is read in one step.

A compressed registration may inflate to twenty times its size.
"""


class RouteProcessor:
    """Handles requests that update or read the routes."""

    def __init__(self, routes: RouteTable, kv_config: KVConfig, clock: Callable[[], int]) -> None:
        self._routes = routes
        self._kv_config = kv_config
        self._clock = clock

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers, keyed by request code."""
        return {
            RequestCode.REGISTER_BROKER: self.register_broker,
            RequestCode.UNREGISTER_BROKER: self.unregister_broker,
            RequestCode.QUERY_DATA_VERSION: self.query_data_version,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self.get_route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self.get_cluster_info,
        }

    def register_broker(self, connection: Connection, command: RemotingCommand) -> Answer | Steps:
        """Registers a broker with its topics. Responds with the address of its master and with the ordered topics."""
        header = command.decode_header(RegisterBrokerRequestHeader)
        if header.body_crc32 and header.body_crc32 != body_crc(command.body):
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, "crc32 not match")
        steps = self._register(connection, command, header)
        return finish(steps) if len(command.body) <= READ_AT_ONCE else steps

    def unregister_broker(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Unregisters a broker."""
        header = command.decode_header(UnRegisterBrokerRequestHeader)
        self._routes.unregister(
            connection,
            name=header.broker_name,
            broker_id=header.broker_id,
            address=header.broker_addr,
            now_ms=self._clock(),
        )
        return encode_response(command, ResponseCode.SUCCESS)

    def query_data_version(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the version of the broker's registered topics, and whether the broker must register them again.

        If the topics are unchanged, renews the broker's registration.
        """
        header = command.decode_header(QueryDataVersionRequestHeader)
        known = self._routes.data_version(header.broker_addr)
        is_changed = known is None or known != DataVersion.decode(command.body)
        if not is_changed:
            self._routes.renew(header.broker_addr, self._clock())
        body = known.encode() if known is not None else b""
        return encode_response(command, ResponseCode.SUCCESS, QueryDataVersionResponseHeader(changed=is_changed), body)

    def get_route(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the route of a topic."""
        header = command.decode_header(GetRouteInfoRequestHeader)
        route = self._routes.route(header.topic)
        if route is None:
            remark = f"No topic route info in name server for the topic: {header.topic}{FURTHER_DETAILS}"
            raise RequestRefused(ResponseCode.TOPIC_NOT_EXIST, remark)
        is_standard = command.version >= VERSION_4_9_4 or bool(header.accept_standard_json_only)
        return encode_response(command, ResponseCode.SUCCESS, body=route.encode_for(accepts_standard_json_only=is_standard))

    def _register(self, connection: Connection, command: RemotingCommand, header: RegisterBrokerRequestHeader) -> Steps:
        body = yield from _read_registration(command.body, is_compressed=header.compressed)
        registration = BrokerRegistration(
            cluster=header.cluster_name,
            name=header.broker_name,
            broker_id=header.broker_id,
            address=header.broker_addr,
            ha_address=header.ha_server_addr,
            topics=body.topic_config_serialize_wrapper,
            filter_servers=body.filter_server_list,
        )
        master = yield from self._routes.register(connection, registration, self._clock())
        ordered = self._kv_config.namespace(ORDER_TOPIC_CONFIG)
        return encode_response(
            command,
            ResponseCode.SUCCESS,
            RegisterBrokerResponseHeader(ha_server_addr=master.ha_address, master_addr=master.address),
            KVTable(table=ordered).encode() if ordered else b"",
        )

    def get_cluster_info(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with all clusters and their brokers."""
        return encode_response(command, ResponseCode.SUCCESS, body=self._routes.cluster_info().encode())


def _read_registration(body: bytes, *, is_compressed: bool) -> Generator[None, None, RegisterBrokerBody]:
    if not body:
        return RegisterBrokerBody()
    if is_compressed:
        return (yield from RegisterBrokerBody.read_compressed(body, max_topics=limits.MAX_TOPICS_OF_A_BROKER))
    if len(body) > limits.MAX_PLAIN_REGISTRATION_LENGTH:
        limit = limits.MAX_PLAIN_REGISTRATION_LENGTH
        remark = f"registration too long: {len(body)} bytes, at most {limit}; set compressedRegister=true"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
    return RegisterBrokerBody.decode(body)
