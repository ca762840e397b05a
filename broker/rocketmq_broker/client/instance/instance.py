"""The parts that every client has: an id, connections, routes and heartbeats (RocketMQ's MQClientInstance)."""

import logging
import os
from collections.abc import Callable, Mapping

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.instance.access import open_remoting
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.heartbeats import Heartbeats
from rocketmq_broker.client.instance.name_servers import NameServers, name_server_addresses
from rocketmq_broker.client.instance.routes import DEFAULT_TOPIC_QUEUE_NUMS, Routes
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Dispatcher, Handler, guard_of
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tls import ClientTls
from rocketmq_broker.world import World


def new_client_id(world: World, address: str) -> str:
    """Returns `address@pid#nanoseconds`, a new id at each call within a process."""
    return f"{address}@{world.process_id()}#{world.steady_ns() + world.next_number()}"


logger = logging.getLogger(__name__)

RequestHandlers = Mapping[int, Handler]
"""Handlers for requests from brokers, keyed by request code. They run on the event loop and return an encoded answer or None."""


class ClientInstance:
    """The connections, routes and heartbeats of one producer or consumer."""

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
        """Creates the parts without starting them. `membership(client_id)` returns the groups of this client.

        `rpc_hook` is called with all requests and responses. `namesrv_addr`, `credentials` and `tls` are read from the
        environment if they are None. Raises IllegalConfiguration if one of them is invalid.
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
        self.calls = BrokerCalls(self.remoting, self.routes)
        self.heartbeats = Heartbeats(self.remoting, self.routes, lambda: membership(self.client_id))
        self._is_stopping = False

    def answer(self, handlers: RequestHandlers) -> None:
        """Adds handlers for requests from brokers."""
        self._dispatcher.add(handlers)

    def start(self) -> None:
        """Starts the background tasks. Does not wait for connections, because brokers may be unreachable."""
        self.routes.start()
        self.heartbeats.start()

    async def stop(self) -> None:
        """Unregisters the client from the brokers, and closes all connections."""
        self._is_stopping = True
        await self.heartbeats.stop()
        await self.heartbeats.unregister()
        await self.routes.stop()
        await self.remoting.close()

    def _disconnected(self, connection: Connection) -> None:
        if not self._is_stopping:
            self.heartbeats.send_soon()
