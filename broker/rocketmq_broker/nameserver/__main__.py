"""The command line of a name server in its own process: `python -m rocketmq_broker.nameserver -p 9876`."""

if __name__ == "__main__":
    from rocketmq_broker.told_to_stop import end_at_once_when_told

    end_at_once_when_told()

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from rocketmq_broker.logs import log_to_stderr
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.nameserver.changes import from_addresses
from rocketmq_broker.nameserver.server import NameServer
from rocketmq_broker.nameserver.settings import NameServerSettings, SettingsMistake, load_settings
from rocketmq_broker.remoting.tls import ServerContexts, TlsUnusable
from rocketmq_broker.world import current_world

CANNOT_START = 1
BAD_SETTINGS = 2


def main(
    config: Annotated[Path | None, typer.Option("-c", "--config", help="Settings under RocketMQ's names: namesrv.conf.")] = None,
    port: Annotated[
        int | None, typer.Option("-p", "--port", min=0, max=65535, help="Port to listen on; 0 takes any [default: 9876]")
    ] = None,
    bind_address: Annotated[str | None, typer.Option(help="Address to listen on [default: 127.0.0.1]")] = None,
    kv_config: Annotated[
        Path | None, typer.Option(help="File that keeps the kv config [default: ~/namesrv/kvConfig.json]")
    ] = None,
) -> None:
    """Runs a RocketMQ name server until SIGTERM or Ctrl-C. What the command line says counts more than the file."""
    log_to_stderr(logging.WARNING)
    try:
        settings = load_settings(config, {"listenPort": port, "bindAddress": bind_address, "kvConfigPath": kv_config})
    except SettingsMistake as error:
        print(printable(str(error)), file=sys.stderr)
        raise typer.Exit(BAD_SETTINGS) from None
    try:
        asyncio.run(_serve(settings))
    except (OSError, ValueError, TlsUnusable) as error:
        print(printable(f"The name server cannot start on {settings.bind_address}:{settings.port}: {error}"), file=sys.stderr)
        raise typer.Exit(CANNOT_START) from None


async def _serve(settings: NameServerSettings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    contexts = ServerContexts(settings.tls)
    server = NameServer(
        settings.bind_address,
        settings.port,
        kv_config_path=settings.kv_config_path,
        steady_ns=current_world().steady_ns,
        guard_changes=from_addresses(settings.admin_addresses),
        contexts=contexts,
    )
    await server.start()
    following = asyncio.create_task(contexts.follow(), name="following the certificate")
    print(f"The Name Server boot success. address={settings.bind_address}:{server.port}", flush=True)
    await stopping.wait()
    following.cancel()
    await server.stop()


def run() -> None:
    """Runs the command line."""
    typer.run(main)


if __name__ == "__main__":
    run()
