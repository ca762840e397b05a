"""A session with the brokers of a command."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from rocketmq_broker.admin.broker_requests.brokers import find_brokers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import AdminError, CannotAsk
from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.client.instance.access import open_remoting
from rocketmq_broker.remoting.client import RemotingClient

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """The brokers that a command works with: one broker, or all masters that are registered at the name servers."""

    namesrv_addr: str | None = None
    broker_addr: str | None = None

    def overridden(self, namesrv_addr: str | None, broker_addr: str | None) -> "Target":
        """Returns a target with these addresses, or this target if both are None."""
        if namesrv_addr is None and broker_addr is None:
            return self
        return Target(namesrv_addr, broker_addr)


@dataclass(slots=True)
class Session:
    """The brokers of a command, and the failures so far."""

    brokers: list[BrokerRequests]
    failures: list[AdminError] = field(default_factory=list)

    async def ask_each(self, question: Callable[[BrokerRequests], Awaitable[T]]) -> list[tuple[BrokerRequests, T]]:
        """Calls `question` for each broker. Returns the brokers with their results.

        Adds errors to `failures`, or raises the error if there is only one broker.
        """
        answers: list[tuple[BrokerRequests, T]] = []
        for broker in self.brokers:
            try:
                answers.append((broker, await question(broker)))
            except AdminError as error:
                if len(self.brokers) == 1:
                    raise
                self.failures.append(error)
        return answers

    async def rows(self, question: Callable[[BrokerRequests], Awaitable[Iterable[T]]]) -> list[tuple[str, T]]:
        """Calls `question` as `ask_each` does. Returns the entries of all results, each with its broker's address."""
        return [(broker.address, entry) for broker, entries in await self.ask_each(question) for entry in entries]


@asynccontextmanager
async def opened_session(target: Target) -> AsyncGenerator[Session]:
    """Yields a session with the target's brokers. Closes its connections after the block. Raises CannotAsk."""
    async with opened_remoting() as remoting:
        yield await session_with(remoting, target)


async def session_with(remoting: RemotingClient, target: Target) -> Session:
    """Returns a session with the target's brokers. Raises CannotAsk."""
    found = await find_brokers(remoting, namesrv_addr=target.namesrv_addr, broker_addr=target.broker_addr)
    return Session([BrokerRequests(remoting, broker.address) for broker in found])


def remoting_of_environment() -> RemotingClient:
    """Returns a client with the account and TLS settings in the environment, without connecting. Raises CannotAsk."""
    try:
        return open_remoting(None, None, None, os.environ)
    except IllegalConfiguration as error:
        raise CannotAsk(str(error)) from None


@asynccontextmanager
async def opened_remoting() -> AsyncGenerator[RemotingClient]:
    """Yields the client of `remoting_of_environment`. Closes its connections after the block. Raises CannotAsk."""
    remoting = remoting_of_environment()
    try:
        yield remoting
    finally:
        await remoting.close()
