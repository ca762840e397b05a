"""Starts the parts of `make up`: acquires the lock, and then starts the console and the processes."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from demo.errors import DemoError
from demo.ports import free_ports_of_brokers, is_taken
from demo.processes import Processes
from demo.scenarios.context import PAYMENT_DEADLINE_S
from demo.scenarios.failpoints import FailpointFolder
from demo.scenarios.runs import Runs
from demo.system import BROKER_PORTS_APART, QUICK_CHECKS, Ports, System
from demo.up.keeper import Keeper
from demo.up.observing import NOTHING_OBSERVED, Observing
from demo.up.regular_orders import regular_orders
from demo.up.screens import extension
from demo.up.second_opinion import SecondOpinion, SparkInstallation, reconciliation, spark_installation
from demo.up.shop import GRPC
from demo.up.state import StateFile, UpState
from rocketmq_broker.admin.console import ConsoleSettings, create_console, serve
from rocketmq_broker.admin.session import Target

_LOOK_EVERY_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Wanted:
    """The arguments of the command line. For each port, 0 means any free port."""

    data: Path
    console_port: int
    ports: Ports
    orders_every_s: float
    brokers: int = 1
    observing: Observing = NOTHING_OBSERVED
    grpc_port: int | None = None
    """The first broker's gRPC port. Further brokers use the ports after it. None disables gRPC."""
    installs_spark: bool = False
    """True to install Spark in the background if it is missing."""


def run(wanted: Wanted, say: Callable[[str], None]) -> None:
    """Runs the system and the console until SIGINT or SIGTERM. Raises DemoError or UnusableSettings if they cannot start."""
    begun_s = time.monotonic()
    with ExitStack() as opened:
        state_file = opened.enter_context(StateFile(wanted.data))
        ports = usable_ports(wanted.ports, wanted.brokers)
        grpc_ports = usable_grpc_ports(wanted.grpc_port, wanted.brokers)
        failpoints = _emptied(wanted.data / "failpoints")
        processes = opened.enter_context(Processes(wanted.data / "logs"))
        observing = wanted.observing
        order_environment = {"ORDER_FAILPOINTS_FOLDER": str(failpoints), "ORDER_PAYMENT_DEADLINE_S": str(PAYMENT_DEADLINE_S)}
        system = System(
            processes,
            wanted.data,
            broker_settings={
                **QUICK_CHECKS,
                **observing.broker_settings,
                **({"grpcServerPort": str(grpc_ports[0])} if grpc_ports else {}),
            },
            environment=observing.environment,
            order_environment=order_environment,
            credit_environment={"CREDIT_FAILPOINTS_FOLDER": str(failpoints)},
            ports=ports,
            has_inventory=True,
            brokers=wanted.brokers,
        )
        opened.callback(system.begin_to_stop)
        keeper = Keeper(system)
        runs = Runs(system, keeper, FailpointFolder(failpoints))
        services = {
            "order service": system.order_url,
            "credit service": system.credit_url,
            "inventory service": system.inventory_url,
        }
        addresses = {**services, "name server": system.namesrv_addr, **observing.addresses(services)}
        if grpc_ports:
            addresses[GRPC] = ", ".join(f"127.0.0.1:{port}" for port in grpc_ports)
        settings = ConsoleSettings(port=wanted.console_port)
        spark = spark_installation(processes) if wanted.installs_spark else SparkInstallation()
        second_opinion = SecondOpinion(reconciliation(processes, system), spark)
        screens = extension(system, keeper, runs, second_opinion, addresses)
        app = create_console(settings, Target(system.namesrv_addr), screens)

        def on_ready(address: str) -> None:
            say(f"{address}  (after {time.monotonic() - begun_s:.1f} s; the services follow, Ctrl-C stops everything)")
            opened.enter_context(keeper)
            opened.callback(runs.stop)
            if wanted.orders_every_s:
                opened.enter_context(regular_orders(system, keeper, wanted.orders_every_s))
            reports.append(asyncio.ensure_future(_report(state_file, address, addresses, keeper, say, begun_s, spark)))

        reports: list[asyncio.Future[None]] = []

        async def serve_and_report() -> None:
            try:
                await serve(app, settings, on_ready)
            finally:
                for report in reports:
                    report.cancel()
                await asyncio.gather(*reports, return_exceptions=True)

        asyncio.run(serve_and_report())
        say("Stopping.")


async def _report(
    state_file: StateFile,
    address: str,
    addresses: Mapping[str, str],
    keeper: Keeper,
    say: Callable[[str], None],
    begun_s: float,
    spark: SparkInstallation,
) -> None:
    """Updates the state file, and prints a message when everything is ready. Then installs Spark, and prints the result."""
    has_failed = False
    is_ready_reported, is_spark_reported, written = False, find_spec("pyspark") is not None, None
    while True:
        state = UpState(os.getpid(), address, addresses, keeper.pids)
        if state != written:
            state_file.write(state)
            written = state
        if not is_ready_reported and keeper.is_all_ready:
            say(f"Everything is ready, after {time.monotonic() - begun_s:.1f} s.")
            if GRPC in addresses:
                say(f"Clients of RocketMQ 5 connect to {addresses[GRPC]} (gRPC).")
            is_ready_reported = True
            if not is_spark_reported and not spark.is_complete:
                say("Spark is being installed in the background, for the screen Second opinion: 0.7 GB.")
            spark.begin()
        if spark.has_failed and not has_failed:
            say(f"Spark could not be installed: {spark.last_line}. The screen Second opinion has a button to retry.")
        elif spark.is_complete and not is_spark_reported and is_ready_reported:
            say(f"Spark is installed, after {time.monotonic() - begun_s:.0f} s.")
            is_spark_reported = True
        has_failed = spark.has_failed
        await asyncio.sleep(_LOOK_EVERY_S)


def usable_ports(wanted: Ports, brokers: int = 1) -> Ports:
    """Returns the wanted ports. Replaces each 0 with a free port. `broker` is the first broker's port.

    Raises DemoError if a port is in use.
    """
    free = Ports.free(brokers)
    chosen = Ports(*(port or other for port, other in zip(wanted, free, strict=True)))
    listening = [chosen.broker + number * BROKER_PORTS_APART for number in range(brokers)]
    needed = [*zip(chosen, Ports._fields, strict=True)]
    needed += [(port, "broker") for first in listening for port in (first - 2, first) if port != chosen.broker]
    _refuse_taken(needed)
    return chosen


def usable_grpc_ports(wanted: int | None, brokers: int = 1) -> list[int]:
    """Returns one gRPC port for each broker. Chooses free ports for 0.

    Returns an empty list for None. Raises DemoError if a port is in use.
    """
    if wanted is None:
        return []
    first = wanted or free_ports_of_brokers(brokers, 1)
    ports = list(range(first, first + brokers))
    _refuse_taken([(port, "grpc") for port in ports])
    return ports


def _refuse_taken(needed: Sequence[tuple[int, str]]) -> None:
    """Raises DemoError if one of the ports is in use. Each port is given with the name of its option."""
    taken = [(port, name) for port, name in needed if is_taken(port)]
    if taken:
        ports = ", ".join(f"{port} (--{name}-port)" for port, name in taken)
        raise DemoError(f"port {ports} is in use; stop the other program, or choose another port; 0 takes any free port")


def _emptied(folder: Path) -> Path:
    """Returns the folder for failpoints. Deletes the failpoints of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.iterdir():
        left.unlink()
    return folder
