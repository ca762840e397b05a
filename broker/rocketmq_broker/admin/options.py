"""Options shared by several commands."""

from collections.abc import Awaitable, Callable
from inspect import Signature, signature
from typing import Annotated, Any

import typer

from rocketmq_broker.admin.output.durations import parse_duration_ms
from rocketmq_broker.admin.running import run
from rocketmq_broker.admin.session import Target
from rocketmq_broker.world import current_world

NameServers = Annotated[
    str | None,
    typer.Option("-n", "--namesrv-addr", help="Name servers, HOST:PORT;HOST:PORT; default: NAMESRV_ADDR, or 127.0.0.1:9876."),
]
BrokerAddr = Annotated[
    str | None, typer.Option("-b", "--broker-addr", help="A single broker, HOST:PORT, instead of all brokers.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Topic = Annotated[str | None, typer.Option("-t", "--topic", help="Only messages for this topic.")]
Group = Annotated[str | None, typer.Option("-g", "--group", help="Only messages of this producer group.")]
Limit = Annotated[int, typer.Option("-l", "--limit", min=1, max=1000, help="The maximum number of lines from each broker.")]


def duration(text: str) -> int:
    """Parses a duration and returns it in milliseconds. Raises typer.BadParameter if it is invalid."""
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


OlderThan = Annotated[
    int,
    typer.Option(
        "--older-than", parser=duration, metavar="DURATION", help="Only entries older than this, such as 90s, 5m or 2d."
    ),
]


def target_of(context: typer.Context, namesrv_addr: str | None, broker_addr: str | None) -> Target:
    """Returns the target of a command. Raises typer.BadParameter if both name servers and a broker are given."""
    if namesrv_addr is not None and broker_addr is not None:
        raise typer.BadParameter("give name servers or one broker, not both", param_hint="--namesrv-addr, --broker-addr")
    chosen: Target = context.obj
    return chosen.overridden(namesrv_addr, broker_addr)


def with_session(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Makes a command of a coroutine function, whose first parameter is the session with the brokers.

    The command has the function's other parameters, and the options that choose the brokers.
    """

    def command(
        context: typer.Context, *, namesrv_addr: NameServers = None, broker_addr: BrokerAddr = None, **given: Any
    ) -> None:
        run(target_of(context, namesrv_addr, broker_addr), lambda session: work(session, **given))

    _, *of_work = signature(work, eval_str=True).parameters.values()
    of_context, *of_brokers, _ = signature(command, eval_str=True).parameters.values()
    parameters = [of_context, *of_work, *of_brokers]
    command.__name__, command.__doc__ = work.__name__, work.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def now_ms() -> int:
    """Returns the wall-clock time in milliseconds since the epoch."""
    return current_world().wall_ms()
