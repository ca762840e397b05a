"""The distribution of the broker's time under our generator's load: `python -m benchmarks.profile`, or `make profile`.

The broker runs under cProfile, which makes each call more expensive: the result shows which functions are called, how often, and
in what proportion. `python -m benchmarks.hot_path` measures a transaction's real cost.
"""

from __future__ import annotations

import pstats
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.side_by_side.brokers import OurBroker
from benchmarks.side_by_side.generator import CannotBuild, build, generate
from demo.processes import Processes, ProcessFailed
from rocketmq_broker.told_to_stop import until_interrupted

FUNCTIONS = 40
WARM_UP_S = 2


def main(
    flush: Annotated[str, typer.Option(help="flushDiskType.")] = "SYNC_FLUSH",
    mode: Annotated[str, typer.Option(help="transactions or sends.")] = "transactions",
    in_flight: Annotated[int, typer.Option(min=1, help="Messages without an answer at any time.")] = 32,
    seconds: Annotated[int, typer.Option(min=1, help="How long, after 2 s of warm-up.")] = 5,
    size: Annotated[int, typer.Option(min=16, help="Bytes of a message's body.")] = 1024,
    sort: Annotated[str, typer.Option(help="tottime: time in a function itself; cumtime: and in what it calls.")] = "tottime",
) -> None:
    """Prints the functions that take most of the broker's time."""
    with tempfile.TemporaryDirectory(prefix="profile-") as folder, Processes(Path(folder) / "logs") as processes:
        profile = Path(folder) / "profile"
        broker = OurBroker(processes, Path(folder) / "broker", flush)
        broker.python_options = ("-m", "cProfile", "-o", str(profile))
        try:
            build()
            broker.start()
            print(
                f"{flush} {mode}, {in_flight} in flight, {seconds} s after {WARM_UP_S} s of warm-up, under cProfile ...",
                flush=True,
            )
            warm_up, measured = f"{WARM_UP_S}s", f"{seconds}s"
            printed = generate(
                processes, mode, [broker.address], in_flight=in_flight, body=size, warm_up=warm_up, measured=measured
            )
        except (CannotBuild, ProcessFailed) as error:
            sys.exit(f"The load could not be put on the broker: {error}")
        broker.stop()
        print(f"{printed['visible']:,} messages became visible, {printed['per_s']:,.0f} a second")
        pstats.Stats(str(profile)).sort_stats(sort).print_stats(FUNCTIONS)


if __name__ == "__main__":
    with until_interrupted("Stopped: no profile was made."):
        typer.run(main)
