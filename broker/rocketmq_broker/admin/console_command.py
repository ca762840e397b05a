"""The command `console`, which serves the web console. It works with Apache's brokers, too."""

import asyncio
import logging
import os
from typing import Annotated

import typer

from rocketmq_broker.admin.options import BrokerAddr, NameServers, target_of
from rocketmq_broker.admin.output.printing import echo, print_error
from rocketmq_broker.admin.running import CANNOT_ASK

Listen = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="The address to listen on; port 0 selects a free port.")
]
PasswordFile = Annotated[
    str | None,
    typer.Option(help="A file with the console's password; required unless HOST is a loopback address."),
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
        print_error(f"package {error.name} is missing: pip install 'rocketmq-broker[console]'")
        raise typer.Exit(CANNOT_ASK) from None
    logging.getLogger("rocketmq_broker.admin.console").setLevel(logging.INFO)  # so that each action is logged with its author
    try:
        settings = console_settings(listen, os.environ, password_file)
        app = create_console(settings, target)
        asyncio.run(serve(app, settings, lambda address: echo(f"console: {address}")))
    except UnusableSettings as error:
        print_error(str(error))
        raise typer.Exit(CANNOT_ASK) from None
    except KeyboardInterrupt:
        return
