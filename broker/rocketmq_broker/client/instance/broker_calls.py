"""Sends requests to brokers, which are given by name or by address."""

from rocketmq_broker.client.instance.calls import ask, ask_for_success, send_oneway
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.client import RemotingClient

TIMEOUT_MS = 3000


class BrokerCalls:
    """Sends requests to brokers. All methods raise BrokerUnreachable or RequestTimedOut."""

    def __init__(self, remoting: RemotingClient, routes: Routes) -> None:
        """Stores `remoting`, which sends the requests, and `routes`, which provides the brokers' addresses."""
        self.remoting = remoting
        self.routes = routes

    async def ask_master(
        self,
        broker_name: str,
        code: RequestCode,
        header: CommandHeader | None,
        body: bytes = b"",
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> RemotingCommand:
        """Sends a request to the master. Returns the response if its code is SUCCESS, and raises BrokerError otherwise."""
        address = await self.routes.address_of(broker_name)
        return await ask_for_success(self.remoting, address, code, header, body, timeout_ms=timeout_ms)

    async def ask_at(
        self,
        address: str,
        code: RequestCode | AdminRequestCode,
        header: CommandHeader | None,
        body: bytes = b"",
        *,
        timeout_ms: int = TIMEOUT_MS,
    ) -> RemotingCommand:
        """Sends a request to the broker at `address`, and returns the response with any code."""
        return await ask(self.remoting, address, code, header, body, timeout_ms=timeout_ms)

    async def send_oneway_to_master(
        self, broker_name: str, code: RequestCode, header: CommandHeader, body: bytes = b"", *, remark: str | None = None
    ) -> None:
        """Sends a one-way request to the master."""
        await send_oneway(self.remoting, await self.routes.address_of(broker_name), code, header, body, remark=remark)
