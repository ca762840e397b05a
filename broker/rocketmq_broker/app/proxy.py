"""Sets up the proxy for RocketMQ 5's clients, if it is enabled in the settings."""

from collections.abc import Callable

from rocketmq_broker.app.errors import StartError
from rocketmq_broker.app.ports import listening
from rocketmq_broker.app.serving import Serving
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.remoting.connections.connection import RequestHandler
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.tls import ServerContexts
from rocketmq_broker.server.access import AccessControl
from rocketmq_broker.server.schedule.delay_levels import parse_delay_levels

try:
    from rocketmq_broker.proxy import Caller, GrpcProxy
except ModuleNotFoundError as missing:
    reason = f"grpcServerPort: {missing.name} is not installed: pip install 'rocketmq-broker[grpc]'"
    raise StartError(reason) from None


async def start_proxy(
    settings: BrokerSettings,
    serving: Serving,
    requests: RequestHandler,
    contexts: ServerContexts,
    memory: MemoryBudget,
    access: AccessControl | None,
    steady_ns: Callable[[], int],
) -> GrpcProxy:
    """Starts the proxy, and returns once it serves RocketMQ 5's clients.

    `requests` handles the requests that the proxy forwards to the broker. Raises StartError.
    """

    def may_consume(caller: Caller, topic: str, group: str) -> None:
        assert access is not None
        access_key = caller.credentials.access_key if caller.credentials is not None else None
        access.refuse_consumer(access_key, caller.address[0], topic, group)

    proxy = GrpcProxy(
        serving.context,
        requests,
        contexts=contexts,
        memory=memory,
        max_connections=settings.server_max_connections,
        steady_ns=steady_ns,
        max_message_bytes=settings.max_message_size,
        delays_ms=parse_delay_levels(settings.message_delay_level),
        popping=serving.popping,
        accounts=access,
        may_consume=may_consume if access is not None else None,
        public_host=settings.broker_ip1,
    )
    host, port = settings.bind_address, settings.grpc_server_port
    await listening(lambda: proxy.start(host, port), host, port, "grpcServerPort")
    return proxy
