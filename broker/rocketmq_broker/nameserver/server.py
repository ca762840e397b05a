"""The name server, which listens on a port. It runs in its own process or in a broker's process."""

import logging
from collections.abc import Callable
from pathlib import Path

from rocketmq_broker.nameserver.admin_processor import AdminProcessor, ConfigProcessor
from rocketmq_broker.nameserver.changes import guard_of_changes
from rocketmq_broker.nameserver.kv_config import KVConfig
from rocketmq_broker.nameserver.route_processor import RouteProcessor
from rocketmq_broker.nameserver.routes import RouteTable
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.dispatcher import Dispatcher, Guard
from rocketmq_broker.remoting.server import RemotingServer
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import ServerContexts

SCAN_INTERVAL_S = 10

logger = logging.getLogger(__name__)


class NameServer:
    """A name server that runs from `start` to `stop`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        kv_config_path: Path | None,
        steady_ns: Callable[[], int],
        scan_interval_s: float = SCAN_INTERVAL_S,
        guard_changes: Guard | None = None,
        contexts: ServerContexts | None = None,
        memory: MemoryBudget | None = None,
    ) -> None:
        """Creates a name server that does not listen yet. If the port is 0, `start` selects a free port.

        `steady_ns` is a monotonic clock, so that a change of the system time does not expire brokers. `guard_changes` restricts
        who may change the data (`rocketmq_broker.nameserver.changes`). If it is None, any client may change it, as in RocketMQ.
        `memory` is a budget shared with other servers. Raises OSError or ValueError if the file of the KV config cannot be read.
        """
        self._steady_ns = steady_ns
        self._routes = RouteTable()
        self._tasks = Tasks()
        self._scan_interval_s = scan_interval_s
        kv_config = KVConfig(kv_config_path)
        refusals: dict[type[Exception], ResponseCode] = {OSError: ResponseCode.SYSTEM_ERROR}
        dispatcher = Dispatcher(refusals=refusals, on_disconnected=[self._routes.forget])
        dispatcher.add(RouteProcessor(self._routes, kv_config, self._steady_ms).handlers)
        dispatcher.add(AdminProcessor(self._routes, kv_config).handlers)
        dispatcher.add(ConfigProcessor(self._settings).handlers)
        if guard_changes is not None:
            dispatcher.guard_by(guard_of_changes(guard_changes))
        self._kv_config_path = kv_config_path
        self._server = RemotingServer(host, port, dispatcher, steady_ns=steady_ns, contexts=contexts, memory=memory)

    @property
    def port(self) -> int:
        """Returns the port on which the server listens. Call it after `start`."""
        return self._server.port

    async def start(self) -> None:
        """Starts listening. Raises OSError if the address cannot be used."""
        await self._server.start()
        self._tasks.every(self._scan_interval_s, "removal of expired brokers", self._expire)

    async def stop(self) -> None:
        """Stops listening, and closes all connections."""
        await self._tasks.stop()
        await self._server.stop()

    def _settings(self) -> dict[str, str]:
        return {"listenPort": str(self.port), "kvConfigPath": str(self._kv_config_path or ""), "orderMessageEnable": "false"}

    def _steady_ms(self) -> int:
        return self._steady_ns() // 1_000_000

    def _expire(self) -> None:
        for address in self._routes.expire(self._steady_ms()):
            logger.warning("removed broker at %s: it has not registered for two minutes", address)
