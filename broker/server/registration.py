"""The broker's registration with its name servers (RocketMQ's BrokerOuterAPI and BrokerController.registerBrokerAll)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from broker.protocol.bodies import KVTable, RegisterBrokerBody
from broker.protocol.codes import RequestCode, ResponseCode
from broker.protocol.errors import ProtocolError
from broker.protocol.headers import RegisterBrokerRequestHeader, UnRegisterBrokerRequestHeader
from broker.remoting.client import RemotingClient
from broker.remoting.errors import RemotingError
from broker.server.config_bodies import topics_body
from broker.server.identity import BrokerIdentity
from broker.server.topic_table import TopicTable

TIMEOUT_MS: Final = 3000
GOODBYE_TIMEOUT_MS: Final = 500

logger = logging.getLogger(__name__)


class Registration:
    """Tells all name servers of the broker and its topics: now and then, and soon after a topic changed."""

    def __init__(
        self,
        *,
        client: RemotingClient,
        name_servers: Sequence[str],
        identity: BrokerIdentity,
        topic_table: TopicTable,
        broker_permission: int,
        period_s: float,
    ) -> None:
        self._client = client
        self._name_servers = name_servers
        self._identity = identity
        self._topics = topic_table
        self._broker_permission = broker_permission
        self._period_s = period_s
        self._wanted = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._unreachable: set[str] = set()

    def request(self) -> None:
        """Something changed: registers soon."""
        self._wanted.set()

    async def registered(self) -> None:
        """Registers, and returns when every name server has answered or failed to."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wanted.set()
        await done

    async def run(self) -> None:
        """Registers until it is cancelled."""
        while True:
            self._wanted.clear()
            waiting, self._waiting = self._waiting, []
            try:
                await self._register_with_all()
            except Exception:
                # Without registrations the name servers forget the broker.
                logger.exception("registering with the name servers failed; it is tried again")
            finally:
                for done in waiting:
                    if not done.done():
                        done.set_result(None)
            try:
                async with asyncio.timeout(self._period_s):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def unregister(self) -> None:
        """Says goodbye to every name server that can be reached at once."""
        header = UnRegisterBrokerRequestHeader(
            broker_name=self._identity.name,
            broker_addr=self._identity.address,
            cluster_name=self._identity.cluster,
            broker_id=self._identity.broker_id,
        )
        goodbyes = [
            self._client.invoke(address, RequestCode.UNREGISTER_BROKER, header, timeout_ms=GOODBYE_TIMEOUT_MS)
            for address in self._name_servers
        ]
        await asyncio.gather(*goodbyes, return_exceptions=True)

    async def _register_with_all(self) -> None:
        header = RegisterBrokerRequestHeader(
            broker_name=self._identity.name,
            broker_addr=self._identity.address,
            cluster_name=self._identity.cluster,
            ha_server_addr="",
            broker_id=self._identity.broker_id,
        )
        topics = topics_body(self._topics.configs, broker_permission=self._broker_permission)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=topics).encode()
        await asyncio.gather(*[self._register_with(address, header, body) for address in self._name_servers])

    async def _register_with(self, address: str, header: RegisterBrokerRequestHeader, body: bytes) -> None:
        try:
            answer = await self._client.invoke(address, RequestCode.REGISTER_BROKER, header, body, timeout_ms=TIMEOUT_MS)
            if answer.code != ResponseCode.SUCCESS:
                raise RemotingError(f"it answers {answer.code}: {answer.remark}")
            if answer.body:
                self._topics.set_order_topics(set(KVTable.decode(answer.body).table))
        except (RemotingError, ProtocolError) as error:
            if address not in self._unreachable:
                self._unreachable.add(address)
                logger.warning("cannot register with the name server %s: %s; trying on", address, error)
        else:
            if address in self._unreachable:
                self._unreachable.discard(address)
                logger.warning("registered with the name server %s again", address)
