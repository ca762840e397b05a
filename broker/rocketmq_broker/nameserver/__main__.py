"""The command line of a name server in its own process: `python -m rocketmq_broker.nameserver -p 9876`."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_stop_signals

    exit_at_once_on_stop_signals()

import asyncio
import logging
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from rocketmq_broker.command_line import BAD_USAGE, CommandLine, port_number
from rocketmq_broker.logs import log_to_stderr
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.nameserver.changes import from_addresses
from rocketmq_broker.nameserver.server import NameServer
from rocketmq_broker.nameserver.settings import NameServerSettings, SettingsMistake, load_settings
from rocketmq_broker.remoting.event_loop import event_of_stop_signals
from rocketmq_broker.remoting.tls import ServerContexts, TlsUnusable
from rocketmq_broker.world import current_world

CANNOT_START = 1


def main(arguments: Sequence[str]) -> int:
    """Runs a name server until SIGTERM or Ctrl-C. Returns the exit status."""
    asked = _read(arguments)
    log_to_stderr(logging.WARNING)
    given = {"listenPort": asked.port, "bindAddress": asked.bind_address, "kvConfigPath": asked.kv_config}
    try:
        settings = load_settings(asked.config, given)
    except SettingsMistake as error:
        print(printable(str(error)), file=sys.stderr)
        return BAD_USAGE
    try:
        asyncio.run(_serve(settings))
    except (OSError, ValueError, TlsUnusable) as error:
        print(printable(f"The name server cannot start on {settings.bind_address}:{settings.port}: {error}"), file=sys.stderr)
        return CANNOT_START
    return 0


def _read(arguments: Sequence[str]) -> Namespace:
    command_line = CommandLine(
        "rocketmq-namesrv",
        "Runs a RocketMQ name server until SIGTERM or Ctrl-C. Command-line options override the settings file.",
    )
    add = command_line.add_argument
    add("-c", "--config", type=Path, metavar="FILE", help="settings file with RocketMQ's names: namesrv.conf")
    add("-p", "--port", type=port_number, help="port to listen on; 0 for any free port [default: 9876]")
    add("--bind-address", metavar="ADDRESS", help="address to listen on [default: 127.0.0.1]")
    add("--kv-config", metavar="FILE", help="file with the KV config [default: ~/namesrv/kvConfig.json]")
    return command_line.parse_args(arguments)


async def _serve(settings: NameServerSettings) -> None:
    stopping = event_of_stop_signals()
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
    """Calls `main` with the command line's arguments, and exits with the returned status."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
