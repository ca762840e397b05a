"""Where the broker's time goes under the load of Apache's client: `python -m benchmarks.profile`, or `make profile`.

The broker runs under cProfile, which makes every call dearer: read it for which functions are called, how often, and in what
proportion. `python -m benchmarks.hot_path` says what a transaction really costs.
"""

from __future__ import annotations

import pstats
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.brokers import OurBroker
from benchmarks.measure import drive
from demo.processes import Processes, ProcessFailed

FUNCTIONS = 40


def main(
    flush: Annotated[str, typer.Option(help="flushDiskType.")] = "SYNC_FLUSH",
    header: Annotated[str, typer.Option(help="The client's serializer: JSON or ROCKETMQ.")] = "JSON",
    threads: Annotated[int, typer.Option(min=1, help="How many threads send.")] = 32,
    seconds: Annotated[int, typer.Option(min=1, help="How long, after 10 s of warm-up.")] = 5,
    size: Annotated[int, typer.Option(help="Bytes of a message's body.")] = 1024,
    sort: Annotated[str, typer.Option(help="tottime: time in a function itself; cumtime: and in what it calls.")] = "tottime",
) -> None:
    """Prints the functions that take most of the broker's time."""
    with tempfile.TemporaryDirectory(prefix="profile-") as folder, Processes(Path(folder) / "logs") as processes:
        profile = Path(folder) / "profile"
        broker = OurBroker(processes, Path(folder) / "broker", flush)
        broker.python_options = ("-m", "cProfile", "-o", str(profile))
        try:
            broker.start()
            print(f"{flush} {header}, {threads} threads, {seconds} s after 10 s of warm-up, under cProfile ...", flush=True)
            printed = drive(processes, [broker.namesrv_addr, str(threads), str(size), str(seconds)], header)
        except ProcessFailed as error:
            sys.exit(f"The load could not be put on the broker: {error}")
        broker.stop()
        print(f"{printed['committed_total']:,} transactions, {printed['tx_per_s']:,} a second")
        pstats.Stats(str(profile)).sort_stats(sort).print_stats(FUNCTIONS)


if __name__ == "__main__":
    typer.run(main)
