"""`console`: the commands' facts and deeds in a browser. Apache's brokers can be asked as well."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Annotated

import typer

from rocketmq_broker.admin.options import BrokerAddr, NameServers, target_of
from rocketmq_broker.admin.running import CANNOT_ASK
from rocketmq_broker.admin.telling.printing import complain, say

Listen = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="Where the console listens; port 0 takes any free one.")
]
PasswordFile = Annotated[
    str | None,
    typer.Option(help="A file with the password that visitors give; needed unless HOST is a loopback address."),
]


def console(
    context: typer.Context,
    listen: Listen = "127.0.0.1:8088",
    password_file: PasswordFile = None,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Show transactions, dead letters, topics and groups in a browser, live, until Ctrl-C."""
    target = target_of(context, namesrv_addr, broker_addr)
    try:
        from rocketmq_broker.admin.console import UnusableSettings, console_settings, create_console, serve
    except ModuleNotFoundError as error:
        complain(f"the console needs more packages ({error.name} is missing): pip install 'rocketmq-broker[console]'")
        raise typer.Exit(CANNOT_ASK) from None
    logging.getLogger("rocketmq_broker.admin.console").setLevel(logging.INFO)  # the log is to name each deed and its author
    try:
        settings = console_settings(listen, os.environ, password_file)
        app = create_console(settings, target)
        asyncio.run(serve(app, settings, lambda address: say(f"console: {address}")))
    except UnusableSettings as error:
        complain(str(error))
        raise typer.Exit(CANNOT_ASK) from None
    except KeyboardInterrupt:
        return
