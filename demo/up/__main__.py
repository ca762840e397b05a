"""python -m demo.up: runs all processes of the demo and the console until Ctrl-C.

The exit code is 0, or 2 if `make up` cannot start. In this case, `make up` prints the reason.
"""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_stop_signals

    exit_at_once_on_stop_signals()

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from demo.errors import DemoError
from demo.system import Ports
from demo.up.observing import Observing
from demo.up.running import Wanted, run
from rocketmq_broker.admin.console import UnusableSettings
from rocketmq_broker.logs import log_to_stderr
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.stop_signals import STOP_SIGNALS

COULD_NOT_START: Final = 2


def _port(meaning: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(min=0, max=65535, help=meaning)
    return option


def main(
    port: Annotated[int, _port("Port of the console; 0, here and below, takes any free port.")] = 8088,
    order_port: Annotated[int, _port("Port of the order service.")] = 8080,
    credit_port: Annotated[int, _port("Port of the credit service.")] = 8081,
    inventory_port: Annotated[int, _port("Port of the inventory service.")] = 8082,
    namesrv_port: Annotated[int, _port("Port of the name server.")] = 9876,
    broker_port: Annotated[int, _port("Port of the broker, which also uses this port minus 2.")] = 10911,
    redis_port: Annotated[int, _port("Port of Redis.")] = 0,
    grpc_port: Annotated[
        int | None, _port("Port of the broker for clients of RocketMQ 5 (gRPC); without it they are not served.")
    ] = None,
    orders_every: Annotated[float, typer.Option(min=0, help="Interval of automatic orders in seconds; 0 places none.")] = 0,
    brokers: Annotated[
        int, typer.Option(min=1, max=26, help="Number of brokers; more than one run as a cluster, with ports 10 apart.")
    ] = 1,
    metrics: Annotated[bool, typer.Option("--metrics", help="Serve Prometheus metrics of the broker and each service.")] = False,
    traces: Annotated[
        bool, typer.Option("--traces", help="Send OpenTelemetry traces to OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318).")
    ] = False,
    install_spark: Annotated[
        bool, typer.Option("--install-spark", help="Install Spark with deploy/scripts/setup in the background, if it is missing.")
    ] = False,
    data: Annotated[Path, typer.Option(help="Folder of data and logs, which are kept.")] = Path("data/up"),
) -> None:
    """Start broker, services, worker, Redis and console, and keep them running until Ctrl-C."""
    log_to_stderr(logging.WARNING)
    os.umask(0o077)  # databases, logs and Redis' files are for this user only
    for number in STOP_SIGNALS:
        signal.signal(number, signal.default_int_handler)  # until the console serves
    console = Console(highlight=False)
    ports = Ports(namesrv_port, broker_port, order_port, credit_port, redis_port, inventory_port)
    try:
        run(
            Wanted(
                data.absolute(),
                port,
                ports,
                orders_every,
                brokers,
                Observing.wanted(metrics=metrics, traces=traces),
                grpc_port,
                install_spark,
            ),
            lambda line: console.print(Text(printable(line)), soft_wrap=True),
        )
    except (DemoError, UnusableSettings) as error:
        console.print(Text("\n".join(map(printable, str(error).splitlines()))), soft_wrap=True)
        sys.exit(COULD_NOT_START)
    except KeyboardInterrupt:
        pass
    console.print("All processes are stopped. Orders, credits and logs are in", Text(printable(str(data))), soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
