"""What every client object has: a name, connections, routes, heartbeats (RocketMQ's MQClientInstance)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.instance.access import open_remoting
from rocketmq_broker.client.instance.client_id import new_client_id
from rocketmq_broker.client.instance.heartbeats import Heartbeats
from rocketmq_broker.client.instance.name_servers import NameServers, name_server_addresses
from rocketmq_broker.client.instance.routes import DEFAULT_TOPIC_QUEUE_NUMS, Routes
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData
from rocketmq_broker.remoting.connection import Connection
from rocketmq_broker.remoting.dispatcher import Dispatcher, Handler, guard_of
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tls import ClientTls
from rocketmq_broker.world import World

logger = logging.getLogger(__name__)

RequestHandlers = Mapping[int, Handler]
"""What the client does when a broker asks it something: called on the event loop; returns the answer's frame or None."""


class ClientInstance:
    """Connections, routes and heartbeats of one producer or consumer. Makes itself known to brokers, and stays known."""

    def __init__(
        self,
        world: World,
        namesrv_addr: str | None,
        membership: Callable[[str], HeartbeatData],
        *,
        credentials: SessionCredentials | None = None,
        tls: ClientTls | bool | None = None,
        rpc_hook: RpcHook | None = None,
        queues_of_new_topics: int = DEFAULT_TOPIC_QUEUE_NUMS,
    ) -> None:
        """`membership(client_id)` says which groups live in this client. Raises IllegalConfiguration.

        What is None of `namesrv_addr`, `credentials` and `tls`, the environment says. `rpc_hook` sees what leaves and what comes.
        """
        addresses = name_server_addresses(namesrv_addr)
        self.world = world
        self.client_ip = world.local_address()
        self.client_id = new_client_id(world, self.client_ip)
        self._dispatcher = Dispatcher(on_disconnected=[self._disconnected])
        if rpc_hook is not None:
            self._dispatcher.guard_by(guard_of(rpc_hook))
        self.remoting = open_remoting(self._dispatcher, credentials, tls, os.environ, rpc_hook)
        self.name_servers = NameServers(addresses, self.remoting)
        self.routes = Routes(self.name_servers, queues_of_new_topics=queues_of_new_topics)
        self.heartbeats = Heartbeats(self.remoting, self.routes, lambda: membership(self.client_id))
        self._is_stopping = False

    def answer(self, handlers: RequestHandlers) -> None:
        """Let these answer what brokers ask."""
        self._dispatcher.add(handlers)

    def start(self) -> None:
        """Begin the background work. Reaches for nobody yet: it is no error if nothing is up."""
        self.routes.start()
        self.heartbeats.start()

    async def stop(self) -> None:
        """Say goodbye to the brokers and close all connections."""
        self._is_stopping = True
        await self.heartbeats.stop()
        await self.heartbeats.unregister()
        await self.routes.stop()
        await self.remoting.close()

    def _disconnected(self, connection: Connection) -> None:
        if not self._is_stopping:
            self.heartbeats.send_soon()
