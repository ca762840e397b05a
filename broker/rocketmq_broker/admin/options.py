"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketmq_broker.admin.session import Target
from rocketmq_broker.admin.telling.durations import parse_duration_ms
from rocketmq_broker.world import current_world

NameServers = Annotated[
    str | None,
    typer.Option("-n", "--namesrv-addr", help="Name servers, HOST:PORT;HOST:PORT; without it NAMESRV_ADDR, else 127.0.0.1:9876."),
]
BrokerAddr = Annotated[str | None, typer.Option("-b", "--broker-addr", help="One broker, HOST:PORT, instead of all of them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Topic = Annotated[str | None, typer.Option("-t", "--topic", help="Only messages for this topic.")]
Group = Annotated[str | None, typer.Option("-g", "--group", help="Only messages of this producer group.")]
Limit = Annotated[int, typer.Option("-l", "--limit", min=1, max=1000, help="The most lines from each broker.")]


def duration(text: str) -> int:
    """Parses a duration into milliseconds. Raises typer.BadParameter."""
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


OlderThan = Annotated[
    int, typer.Option("--older-than", parser=duration, metavar="DURATION", help="Only older ones: 90s, 5m, 2d.")
]


def target_of(context: typer.Context, namesrv_addr: str | None, broker_addr: str | None) -> Target:
    """Returns the brokers that a command asks. Raises typer.BadParameter for both a name server and a broker."""
    if namesrv_addr is not None and broker_addr is not None:
        raise typer.BadParameter("name servers or one broker, not both", param_hint="--namesrv-addr, --broker-addr")
    chosen: Target = context.obj
    return chosen.overridden(namesrv_addr, broker_addr)


def now_ms() -> int:
    """Returns the wall-clock time in milliseconds since the epoch."""
    return current_world().wall_ms()
