"""The broker's command line: `python -m rocketmq_broker -c broker.conf`."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_stop_signals

    exit_at_once_on_stop_signals()

import asyncio
import gc
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocketmq_broker.app import Broker, StartError
from rocketmq_broker.app.busy_polling import busy_poll_s
from rocketmq_broker.app.serving import settings_text
from rocketmq_broker.build_info import is_compiled, version_text
from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.folder import refuse_a_single_broker
from rocketmq_broker.command_line import BAD_USAGE, CommandLine, count, port_number
from rocketmq_broker.config import BrokerSettings, ConfigError, load_settings
from rocketmq_broker.logs import MAX_LINE_LENGTH, log_to_stderr
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.platform.limits import raise_max_open_files
from rocketmq_broker.platform.processes import NO_SUPERVISOR
from rocketmq_broker.platform.processors import usable_processors
from rocketmq_broker.remoting.event_loop import event_of_stop_signals, new_event_loop
from rocketmq_broker.world import current_world

CANNOT_START = 1
CANNOT_GO_ON = 3
STORE_CLEANER_LOGGER = "rocketmq_broker.server.durability.store_cleaner"
"""The logger that reports deleted files. Its INFO lines are printed; other loggers print WARNING and above."""


def main(arguments: Sequence[str]) -> int:
    """Runs a broker until SIGTERM or Ctrl-C. Returns the exit status."""
    asked = _read(arguments)
    if asked.version:
        print(version_text())
        return 0
    given = {"namesrvAddr": asked.namesrv_addr} if asked.namesrv_addr else {}
    if asked.grpc_port is not None:
        given["grpcServerPort"] = str(asked.grpc_port)
    try:
        loaded = load_settings(asked.config, given, os.environ)
    except ConfigError as error:
        print(printable(str(error)), file=sys.stderr)
        return BAD_USAGE
    for warning in loaded.warnings:
        print(printable(f"warning: {warning}"), file=sys.stderr)
    if asked.print_config:
        print(settings_text(loaded.settings), end="")
        return 0
    log_to_stderr(logging.WARNING)
    logging.getLogger(STORE_CLEANER_LOGGER).setLevel(logging.INFO)
    raise_max_open_files()
    try:
        if asked.ephemeral:
            _run_ephemeral(asked.config, given, is_controlled=asked.control)
            return 0
        went_well = (
            _run(loaded.settings) if asked.brokers is None else asyncio.run(_serve_cluster(loaded.settings, asked.brokers))
        )
    except StartError as error:
        print(printable(f"The broker cannot start: {error}"), file=sys.stderr)
        return CANNOT_START
    except ClusterMistake as error:
        print(printable(f"The {'broker' if asked.brokers is None else 'cluster'} cannot start: {error}"), file=sys.stderr)
        return CANNOT_START
    return 0 if went_well else CANNOT_GO_ON


def _read(arguments: Sequence[str]) -> Namespace:
    command_line = CommandLine(
        "rocketmq-broker",
        "Runs a RocketMQ broker until SIGTERM or Ctrl-C. Without -c all settings are the defaults; see -p.",
    )
    add = command_line.add_argument
    add("-c", "--config", type=Path, metavar="FILE", help="settings file with RocketMQ's names: broker.conf")
    add("-n", "--namesrv-addr", metavar="ADDRESSES", help="addresses of name servers, HOST:PORT;HOST:PORT")
    add("--grpc-port", type=port_number, metavar="PORT", help="port for clients of RocketMQ 5 (gRPC); 0 for any free port")
    add("-p", "--print-config", action="store_true", help="print all settings and exit")
    add("--version", action="store_true", help="print the version and whether it is compiled, and exit")
    add(
        "--brokers",
        type=count,
        metavar="N",
        help="run a name server and N brokers, one process each, with their stores in storePathRootDir",
    )
    add("--ephemeral", action="store_true", help="for tests: use free ports, print them as JSON, and keep the store in memory")
    add("--control", action="store_true", help="with --ephemeral: accept commands from tests over HTTP on loopback")
    asked = command_line.parse_args(arguments)
    if asked.control and not asked.ephemeral:
        command_line.error("--control requires --ephemeral")
    if asked.brokers is not None and asked.ephemeral:
        command_line.error("--brokers cannot be combined with --ephemeral")
    if asked.brokers is not None and NO_SUPERVISOR is not None:
        command_line.error(NO_SUPERVISOR)
    return asked


def _run(settings: BrokerSettings) -> bool:
    busy_poll = busy_poll_s(settings, usable_processors())
    with asyncio.Runner(loop_factory=lambda: new_event_loop(busy_poll)) as runner:
        return runner.run(_serve(settings))


def _run_ephemeral(config: Path | None, given: Mapping[str, str], *, is_controlled: bool) -> None:
    # Imported here, like the cluster, to save memory and start-up time in an ordinary broker.
    from rocketmq_broker.protocol.java_properties import parse_properties
    from rocketmq_broker.testing.ephemeral import run_ephemeral

    read = parse_properties(config.read_text(encoding="utf-8")) if config else {}
    run_ephemeral({**read, **given}, is_controlled=is_controlled)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disables the garbage collector inside the block, and excludes objects created there from later collections.

    These objects exist until the broker stops. Otherwise, scanning them takes a quarter of the time needed to open a
    store with 100,000 pending transactions.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


async def _serve(settings: BrokerSettings) -> bool:
    """Runs the broker until a stop signal. Returns False if the broker stopped because of an error."""
    stopping = event_of_stop_signals()
    refuse_a_single_broker(settings.store_root)
    broker = Broker(settings)
    with collector_paused():
        await broker.start()
    if broker.metrics_url is not None:
        print(f"Metrics are at {broker.metrics_url}", flush=True)
    if broker.grpc_endpoint is not None:
        print(f"Clients of RocketMQ 5 connect to {broker.grpc_endpoint} (gRPC)", flush=True)
    identity, name_servers = broker.identity, ";".join(broker.name_servers)
    print(
        f"The broker[{identity.name}, {identity.address}] boot success. "
        f"serializeType=JSON and name server is {name_servers}, store {settings.store_root}"
        f"{', compiled' if is_compiled() else ''}",
        flush=True,
    )
    waits = [asyncio.ensure_future(event.wait()) for event in (stopping, broker.cannot_go_on)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await broker.stop()
    return not broker.cannot_go_on.is_set()


async def _serve_cluster(settings: BrokerSettings, brokers: int) -> bool:
    """Runs brokers under a supervisor until a stop signal. Returns False if all of them failed."""
    from rocketmq_broker.cluster.supervisor import SupervisorOptions, supervise

    stopping = event_of_stop_signals()
    return await supervise(SupervisorOptions(settings, brokers, print_cluster_line, current_world(), stopping))


def print_cluster_line(name: str, text: str) -> None:
    """Prints a line about a process of the cluster. Escapes control characters, which clients' topic names may contain."""
    print(f"{name:8} | {printable(text, MAX_LINE_LENGTH)}", flush=True)


def run() -> None:
    """Calls `main` with the command line's arguments, and exits with the returned status."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
