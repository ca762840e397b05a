"""Requests to the master of a broker name, at its present address."""

from __future__ import annotations

from rocketmq_broker.client.instance.calls import ask, ask_for_success, tell
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.client import RemotingClient

TIMEOUT_MS = 3000


class BrokerCalls:
    """The requests to brokers by their names. All methods raise BrokerUnreachable or RequestTimedOut."""

    def __init__(self, remoting: RemotingClient, routes: Routes) -> None:
        """`routes` finds the brokers' addresses."""
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
        """Returns the answer if it is SUCCESS. Raises BrokerError otherwise."""
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
        """Returns the answer of the broker at that address, with any code."""
        return await ask(self.remoting, address, code, header, body, timeout_ms=timeout_ms)

    async def tell_master(
        self, broker_name: str, code: RequestCode, header: CommandHeader, body: bytes = b"", *, remark: str | None = None
    ) -> None:
        """Sends a one-way request."""
        await tell(self.remoting, await self.routes.address_of(broker_name), code, header, body, remark=remark)
