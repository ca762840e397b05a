"""The name server in a process of its own: `python -m broker.nameserver -p 9876`."""

import asyncio
import logging
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from broker.logs import log_to_stderr
from broker.message.printable import printable
from broker.nameserver import NameServer


def main(
    port: Annotated[int, typer.Option("-p", "--port", min=0, max=65535, help="Port to listen on; 0 takes any.")] = 9876,
    bind_address: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    kv_config: Annotated[
        Path | None, typer.Option(help="File that keeps the kv config [default: ~/namesrv/kvConfig.json]")
    ] = None,
) -> None:
    """Runs a RocketMQ name server until SIGTERM or Ctrl-C."""
    log_to_stderr(logging.WARNING)
    path = kv_config or Path("~/namesrv/kvConfig.json").expanduser()
    try:
        asyncio.run(_serve(bind_address, port, path))
    except (OSError, ValueError) as error:
        print(printable(f"The name server cannot start on {bind_address}:{port}: {error}"), file=sys.stderr)
        raise typer.Exit(1) from None


async def _serve(host: str, port: int, kv_config: Path) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = NameServer(host, port, kv_config_path=kv_config, clock=lambda: time.time_ns() // 1_000_000)
    await server.start()
    print(f"The Name Server boot success. address={host}:{server.port}", flush=True)
    await stopping.wait()
    await server.stop()


if __name__ == "__main__":
    typer.run(main)
