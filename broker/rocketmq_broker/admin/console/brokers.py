"""The brokers of the console. Connections to them stay open between requests."""

from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress, find_brokers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.session import Session, Target, remoting_of_environment
from rocketmq_broker.remoting.client import RemotingClient


class Brokers:
    """The brokers of the target. They are looked up for each request, because the set of brokers may change."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._remoting: RemotingClient | None = None

    async def open(self) -> None:
        """Creates the client without connecting. Raises CannotAsk for invalid account or TLS settings in the environment."""
        self._remoting = remoting_of_environment()

    async def close(self) -> None:
        """Closes all connections."""
        if self._remoting is not None:
            await self._remoting.close()

    async def session(self) -> Session:
        """Returns a session with all brokers of the target. Raises CannotAsk if there are none."""
        return Session([requests for _, requests in await self.addressed()])

    async def addressed(self) -> list[tuple[BrokerAddress, BrokerRequests]]:
        """Returns all brokers of the target, with their names and addresses. Raises CannotAsk if there are none."""
        if self._remoting is None:
            raise CannotAsk("the console has not been started")
        namesrv_addr, broker_addr = self._target.namesrv_addr, self._target.broker_addr
        found = await find_brokers(self._remoting, namesrv_addr=namesrv_addr, broker_addr=broker_addr)
        return [(one, BrokerRequests(self._remoting, one.address)) for one in found]


def broker_at(session: Session, address: str) -> BrokerRequests:
    """Returns the session's broker at `address`, or the only broker if `address` is empty.

    Raises Refused if there is no such broker.
    """
    for broker in session.brokers:
        if broker.address == address:
            return broker
    if not address and len(session.brokers) == 1:
        return session.brokers[0]
    raise Refused(f"unknown broker {address}" if address else "there are several brokers: choose one")
