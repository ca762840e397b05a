"""Runs a command, prints each failure on a separate line, and sets the exit status."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import typer

from rocketmq_broker.admin.errors import AdminError, CannotAsk
from rocketmq_broker.admin.output.printing import print_error
from rocketmq_broker.admin.session import Session, Target, opened_remoting, session_with
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.stop_signals import INTERRUPTED

REFUSED: Final = 1
CANNOT_ASK: Final = 2


def run(target: Target, work: Callable[[Session], Awaitable[None]]) -> None:
    """Runs `work` with the target's brokers. Raises typer.Exit with status 1 after a refusal, 2 if a broker was unreachable."""

    async def with_brokers(remoting: RemotingClient) -> list[AdminError]:
        session = await session_with(remoting, target)
        await work(session)
        return session.failures

    run_with_remoting(with_brokers)


def run_with_remoting(work: Callable[[RemotingClient], Awaitable[list[AdminError]]]) -> None:
    """Runs `work`, which finds the brokers itself and returns the failures. Raises typer.Exit as `run` does."""
    failures: list[AdminError]
    try:
        failures = asyncio.run(_with_remoting(work))
    except AdminError as error:
        failures = [error]
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    for failure in failures:
        print_error(str(failure))
    if failures:
        raise typer.Exit(CANNOT_ASK if any(isinstance(failure, CannotAsk) for failure in failures) else REFUSED)


async def _with_remoting(work: Callable[[RemotingClient], Awaitable[list[AdminError]]]) -> list[AdminError]:
    async with opened_remoting() as remoting:
        return await work(remoting)
