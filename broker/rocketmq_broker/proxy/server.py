"""The proxy, which consists of the gRPC server and its methods (RocketMQ's ProxyStartup)."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.calls import Calls, Hold, Streaming
from rocketmq_broker.proxy.clients.client_settings import SettingsAnswers
from rocketmq_broker.proxy.clients.memberships import heartbeat, leave
from rocketmq_broker.proxy.clients.routes import TopicRoutes
from rocketmq_broker.proxy.clients.telemetry import Telemetry
from rocketmq_broker.proxy.connections.call import Call
from rocketmq_broker.proxy.connections.caller import Accounts, Caller, caller_of
from rocketmq_broker.proxy.connections.grpc_server import GrpcServer
from rocketmq_broker.proxy.connections.session import ClientSessions
from rocketmq_broker.proxy.consuming.receiving import MayConsume, Receiving
from rocketmq_broker.proxy.consuming.renewals import LOOK_EVERY_S, Renewals
from rocketmq_broker.proxy.messages.request_size import refuse_oversized_request
from rocketmq_broker.proxy.messages.sent import SentMessages
from rocketmq_broker.proxy.producing.sending import Sending
from rocketmq_broker.proxy.producing.transactions import TelemetryChecks, end_transaction
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.remoting.connections.connection import RequestHandler
from rocketmq_broker.remoting.connections.memory_budget import MemoryBudget
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import ServerContexts
from rocketmq_broker.server.popping import Popping
from rocketmq_broker.server.server_context import ServerContext

_BEYOND_THE_BODY_BYTES: Final = 64 * 1024
_STOPS_WITHIN_S: Final = 1.0
_FIRST_RETRY_LEVEL: Final = 2
"""The index of the first delay level for retries. As in RocketMQ, the delay level of attempt n is n + 2."""


class GrpcProxy:
    """The broker's gRPC server for clients of RocketMQ 5."""

    def __init__(
        self,
        context: ServerContext,
        broker: RequestHandler,
        *,
        contexts: ServerContexts,
        memory: MemoryBudget,
        max_connections: int,
        steady_ns: Callable[[], int],
        max_message_bytes: int,
        delays_ms: Sequence[int],
        popping: Popping,
        accounts: Accounts | None,
        may_consume: MayConsume | None,
        public_host: str,
    ) -> None:
        """Creates a proxy. `broker` handles its requests. `accounts` and `may_consume` are None if no accounts are needed."""
        self._context = context
        self._popping = popping
        self._renewals = Renewals(popping, context.clock)
        self._tasks = Tasks()
        self._accounts = accounts
        self._may_consume = may_consume
        self._max_message_bytes = max_message_bytes
        self._sessions = ClientSessions(broker, memory, (context.identity.ip, context.identity.port))
        self._server = GrpcServer(contexts, memory, max_connections, steady_ns, self._sessions.connection_ended)
        self._sessions.requests.add(TelemetryChecks(self._sessions).handlers)
        self._messages = SentMessages(delays_ms, max_message_bytes)
        self._delays_ms = delays_ms
        self._public_host = public_host

    @property
    def port(self) -> int:
        """Returns the port, which is valid after `start`."""
        return self._server.port

    async def start(self, host: str, port: int) -> None:
        """Starts serving clients. Raises OSError if the address cannot be used."""
        await self._server.bind(host, port)
        self._tasks.every(LOOK_EVERY_S, "renewing invisible times", self._renewals.look)
        self._server.start(self._calls().methods())

    def stop_listening(self) -> None:
        """Stops accepting connections. Existing connections stay open."""
        self._server.stop_listening()

    async def stop(self) -> None:
        """Ends all calls and connections. Call this method after the broker has responded to the open requests."""
        await self._tasks.stop()
        await self._sessions.close()
        await self._server.stop(_STOPS_WITHIN_S)

    def _calls(self) -> Calls:
        context = self._context
        routes = TopicRoutes(context.topic_table, context.identity.name, (self._public_host, self._server.port))
        sending = Sending(routes, self._messages, context.clock)
        answers = SettingsAnswers(
            group_of=context.subscription_groups.groups.get,
            is_fifo=routes.is_fifo,
            max_body_bytes=self._max_message_bytes,
            retry_delays_ms=self._delays_ms[_FIRST_RETRY_LEVEL:] or self._delays_ms,
        )
        sessions = self._sessions
        calls = Calls(self._caller_of)
        calls.telemetry(Telemetry(sessions, answers).serve)
        calls.unary("QueryRoute", _answered(routes.query_route))
        calls.unary("QueryAssignment", _answered(routes.query_assignment))
        calls.unary("Heartbeat", lambda caller, request: heartbeat(caller, sessions.of(caller), request))
        calls.unary("NotifyClientTermination", lambda caller, request: leave(sessions, caller, request))
        calls.unary(
            "SendMessage",
            lambda caller, request: sending.send(sessions.of(caller), request),
            max_bytes=2 * self._max_message_bytes + _BEYOND_THE_BODY_BYTES,
            refuse_encoded=refuse_oversized_request,
        )
        calls.unary("EndTransaction", lambda caller, request: end_transaction(sessions.of(caller), request))
        receiving = Receiving(self._popping, routes, self._renewals, context.clock, self._may_consume)
        calls.streaming(
            "ReceiveMessage", lambda caller, request, hold: receiving.receive(caller, sessions.of(caller), request, hold)
        )
        calls.unary("AckMessage", receiving.ack)
        calls.unary("ChangeInvisibleDuration", receiving.change_invisible_duration)
        calls.unary("ForwardMessageToDeadLetterQueue", receiving.forward_to_dead_letters)
        for name in ("UpdateOffset", "GetOffset", "QueryOffset", "RecallMessage", "SyncLiteSubscription"):
            calls.unsupported(name)
        calls.streaming("PullMessage", _unsupported_stream("PullMessage"))
        return calls

    def _caller_of(self, call: Call) -> Caller:
        return caller_of(call.metadata, call.address, self._accounts, call.remaining_s())


def _answered(answer: Callable[[Any], Any]) -> Callable[[Caller, Any], Any]:
    async def serve(caller: Caller, request: Any) -> Any:
        return answer(request)

    return serve


def _unsupported_stream(name: str) -> Streaming:
    async def refuse(caller: Caller, request: Any, hold: Hold) -> AsyncIterator[Any]:
        raise CallRefused(api.UNSUPPORTED, f"{name} is not supported by this broker")
        yield

    return refuse
