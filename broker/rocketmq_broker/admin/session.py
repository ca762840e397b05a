"""A run of a command: it finds and asks the brokers, closes the connections, and turns failures into a line and an exit code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

import typer

from rocketmq_broker.admin.asking.brokers import find_brokers
from rocketmq_broker.admin.asking.requests import BrokerRequests
from rocketmq_broker.admin.errors import AdminError, CannotAsk
from rocketmq_broker.admin.telling.printing import complain
from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.client.instance.access import open_remoting
from rocketmq_broker.remoting.client import RemotingClient

REFUSED: Final = 1
CANNOT_ASK: Final = 2
INTERRUPTED: Final = 130

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """The brokers that the user means."""

    namesrv_addr: str | None = None
    broker_addr: str | None = None

    def overridden(self, namesrv_addr: str | None, broker_addr: str | None) -> Target:
        """Returns the target given after the command's name, or else this one."""
        if namesrv_addr is None and broker_addr is None:
            return self
        return Target(namesrv_addr, broker_addr)


@dataclass(slots=True)
class Session:
    """The brokers of a run, and its failures so far."""

    brokers: list[BrokerRequests]
    failures: list[AdminError] = field(default_factory=list)

    async def ask_each(self, question: Callable[[BrokerRequests], Awaitable[T]]) -> list[tuple[BrokerRequests, T]]:
        """Returns the answers of all brokers that answer, and keeps the others' failures. Raises the failure of the only one."""
        answers: list[tuple[BrokerRequests, T]] = []
        for broker in self.brokers:
            try:
                answers.append((broker, await question(broker)))
            except AdminError as error:
                if len(self.brokers) == 1:
                    raise
                self.failures.append(error)
        return answers


def run(target: Target, work: Callable[[Session], Awaitable[None]]) -> None:
    """Does the work with the target's brokers. Raises typer.Exit: 1 if a broker refused, 2 if one could not be asked."""

    async def with_brokers(remoting: RemotingClient) -> list[AdminError]:
        session = await _session(remoting, target)
        await work(session)
        return session.failures

    run_with_remoting(with_brokers)


@asynccontextmanager
async def opened_session(target: Target) -> AsyncGenerator[Session]:
    """Yields a session with the target's brokers; closes its connections after the block. Raises CannotAsk."""
    async with _opened_remoting() as remoting:
        yield await _session(remoting, target)


def run_with_remoting(work: Callable[[RemotingClient], Awaitable[list[AdminError]]]) -> None:
    """Does work that finds its brokers by itself, and returns failures. Raises typer.Exit as `run` does."""
    failures: list[AdminError]
    try:
        failures = asyncio.run(_with_remoting(work))
    except AdminError as error:
        failures = [error]
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    for failure in failures:
        complain(str(failure))
    if failures:
        raise typer.Exit(CANNOT_ASK if any(isinstance(failure, CannotAsk) for failure in failures) else REFUSED)


async def _with_remoting(work: Callable[[RemotingClient], Awaitable[list[AdminError]]]) -> list[AdminError]:
    async with _opened_remoting() as remoting:
        return await work(remoting)


async def _session(remoting: RemotingClient, target: Target) -> Session:
    found = await find_brokers(remoting, namesrv_addr=target.namesrv_addr, broker_addr=target.broker_addr)
    return Session([BrokerRequests(remoting, broker.address) for broker in found])


@asynccontextmanager
async def _opened_remoting() -> AsyncGenerator[RemotingClient]:
    try:
        remoting = open_remoting(None, None, None, os.environ)
    except IllegalConfiguration as error:
        raise CannotAsk(str(error)) from None
    try:
        yield remoting
    finally:
        await remoting.close()
