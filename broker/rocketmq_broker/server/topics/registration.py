"""The broker's registration with its name servers (RocketMQ's BrokerOuterAPI and BrokerController.registerBrokerAll)."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rocketmq_broker.message.record import body_crc
from rocketmq_broker.message.topics import OP_HALF_TOPIC
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.bodies.register_broker import RegisterBrokerBody
from rocketmq_broker.protocol.bodies.route import TopicRouteData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.headers.name_server import (
    GetRouteInfoRequestHeader,
    RegisterBrokerRequestHeader,
    UnRegisterBrokerRequestHeader,
)
from rocketmq_broker.remoting.backoff import Backoff
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import RemotingError
from rocketmq_broker.server.topics.config_bodies import TopicsSnapshot, registered_topics, topics_body
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.name_server_link import NameServerLink
from rocketmq_broker.server.topics.topic_table import TopicTable

MAX_PLAIN_TOPICS: Final = 1000
"""The maximum number of topics in an uncompressed registration. JSON for 80,000 topics would exceed the frame limit.

The compressed form omits topicSysFlag and order, which are rarely used.
"""
MAX_REGISTERED: Final = 60_000
"""The maximum number of registered topics.

This project's name server accepts 65,536. Only stores of older brokers can contain so many topics.
"""
TIMEOUT_MS: Final = 3000
GOODBYE_TIMEOUT_MS: Final = 500
FIRST_PAUSE_S: Final = 0.5
MAX_PAUSE_S: Final = 5.0
"""The maximum pause, in seconds, between attempts to reach a name server."""

logger = logging.getLogger(__name__)


class Registration:
    """Keeps the broker and its topics registered with all name servers."""

    def __init__(
        self,
        *,
        client: RemotingClient,
        name_servers: Sequence[str],
        identity: BrokerIdentity,
        topic_table: TopicTable,
        broker_permission: int,
        period_s: float,
        new_backoff: Callable[[], Backoff] = lambda: Backoff(FIRST_PAUSE_S, MAX_PAUSE_S),
    ) -> None:
        """Creates a link to each name server. `period_s` is the interval in seconds between registrations without changes."""
        self._client = client
        self._identity = identity
        self._topics = topic_table
        self._broker_permission = broker_permission
        self._links = [
            NameServerLink(address, self._register_with, period_s=period_s, backoff=new_backoff()) for address in name_servers
        ]
        self._unreachable: set[str] = set()
        self._has_left_out = False
        self._changed: dict[str, set[str]] = {address: set() for address in name_servers}
        """The topics that changed since the last registration, keyed by name server address."""
        self.on_registered: Callable[[set[str]], None] = lambda topics: None
        """A function that is called with the changed topics when a name server has accepted them."""

    @property
    def registered_with(self) -> dict[str, bool]:
        """Returns whether the broker is registered with each name server, keyed by address."""
        return {link.address: link.is_registered for link in self._links}

    def topic_changed(self, topic: str) -> None:
        """Registers immediately with all name servers. Call it after a change of the topic."""
        for link in self._links:
            self._changed[link.address].add(topic)
            link.request()

    def connection_ended(self) -> None:
        """Registers again with the name servers whose connections have ended."""
        for link in self._links:
            if link.is_registered and not self._client.is_connected(link.address):
                link.connection_ended()

    async def registered(self) -> None:
        """Registers with all name servers. Returns when each of them has responded or failed."""
        await asyncio.gather(*(link.registered() for link in self._links))

    async def route_of(self, topic: str) -> TopicRouteData | None:
        """Requests the topic's route, which contains the topic's queues on all brokers.

        Returns None if no name server returns a route.
        """
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        for link in self._links:
            try:
                answer = await self._client.invoke(
                    link.address, RequestCode.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=TIMEOUT_MS
                )
                if answer.code == ResponseCode.SUCCESS:
                    return TopicRouteData.decode(answer.body)
            except (RemotingError, ProtocolError):
                continue
        return None

    async def run(self) -> None:
        """Keeps the broker registered until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for link in self._links:
                group.create_task(link.run(), name=f"registration with {link.address}")

    async def unregister(self) -> None:
        """Unregisters from all name servers, with a timeout of GOODBYE_TIMEOUT_MS."""
        header = UnRegisterBrokerRequestHeader(
            broker_name=self._identity.name,
            broker_addr=self._identity.address,
            cluster_name=self._identity.cluster,
            broker_id=self._identity.broker_id,
        )
        requests = [
            self._client.invoke(link.address, RequestCode.UNREGISTER_BROKER, header, timeout_ms=GOODBYE_TIMEOUT_MS)
            for link in self._links
        ]
        await asyncio.gather(*requests, return_exceptions=True)

    async def _register_with(self, address: str) -> bool:
        changed, self._changed[address] = self._changed[address], set()
        try:
            await self._send(address)
        except (RemotingError, ProtocolError) as error:
            if address not in self._unreachable:
                self._unreachable.add(address)
                logger.error(
                    "cannot register with name server %s: %s; its clients cannot find this broker. Retrying",
                    address,
                    error,
                )
            self._changed[address] |= changed
            return False
        except Exception:
            # Retry after any error, because name servers remove brokers that stop registering.
            logger.exception("registration with name server %s failed, retrying", address)
            self._changed[address] |= changed
            return False
        if address in self._unreachable:
            self._unreachable.discard(address)
            logger.warning("registered with name server %s again", address)
        if changed:
            self.on_registered(changed)
        return True

    async def _send(self, address: str) -> None:
        encoded = await self._encoded()
        header = RegisterBrokerRequestHeader(
            broker_name=self._identity.name,
            broker_addr=self._identity.address,
            cluster_name=self._identity.cluster,
            ha_server_addr="",
            broker_id=self._identity.broker_id,
            compressed=encoded.is_compressed,
            body_crc32=encoded.crc32,
        )
        answer = await self._client.invoke(address, RequestCode.REGISTER_BROKER, header, encoded.body, timeout_ms=TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            raise RemotingError(f"the name server refused the registration with response code {answer.code}: {answer.remark}")
        if answer.body:
            self._topics.set_order_topics(set(KVTable.decode(answer.body).table))

    async def _encoded(self) -> "EncodedRegistration":
        snapshot = TopicsSnapshot.of(self._topics.configs)
        if len(snapshot.configs) <= MAX_PLAIN_TOPICS:
            encoded = encode_registration(snapshot, self._broker_permission)
        else:
            encoded = await asyncio.to_thread(encode_registration, snapshot, self._broker_permission)
        if encoded.left_out and not self._has_left_out:
            logger.error(
                "too many topics for a registration: %d topics; %d retry and dead letter topics are not registered",
                len(snapshot.configs),
                encoded.left_out,
            )
        self._has_left_out = encoded.left_out > 0
        return encoded


class EncodedRegistration(NamedTuple):
    """The body of REGISTER_BROKER, and values for its header."""

    body: bytes
    is_compressed: bool
    crc32: int
    """The checksum of a compressed body. It is 0 for an uncompressed body, as in Apache's brokers."""
    left_out: int
    """The number of topics that are omitted because of MAX_REGISTERED."""


def encode_registration(topics: TopicsSnapshot, broker_permission: int) -> EncodedRegistration:
    """Encodes the registration of these topics. Omits the op topic, as RocketMQ does.

    Do not call this function on the event loop's thread, because it takes about 0.2 s for very many topics.
    """
    everything = topics_body(topics, broker_permission=broker_permission)
    everything.topic_config_table.pop(OP_HALF_TOPIC, None)
    registered = registered_topics(everything, MAX_REGISTERED)
    left_out = len(everything.topic_config_table) - len(registered.topic_config_table)
    body = RegisterBrokerBody(topic_config_serialize_wrapper=registered)
    if len(registered.topic_config_table) <= MAX_PLAIN_TOPICS:
        return EncodedRegistration(body.encode(), is_compressed=False, crc32=0, left_out=left_out)
    compressed = body.encode_compressed()
    return EncodedRegistration(compressed, is_compressed=True, crc32=body_crc(compressed), left_out=left_out)
