"""Fuzzes broker, name server and client by structure: `python -m tests.lab.fuzz --minutes 60`, or `make fuzz`."""

import asyncio
import random
import time
from pathlib import Path
from typing import Annotated

import typer

from rocketmq_broker.stop_signals import until_interrupted
from tests.lab.fuzz.calls import fuzz_calls
from tests.lab.fuzz.clients import fuzz_answers, fuzz_requests
from tests.lab.fuzz.servers import fuzz_servers
from tests.lab.fuzz.watch import MAX_MS, Watch


async def fuzz_round(watch: Watch, seed: int, inputs: int) -> None:
    """Runs one round of all targets. The seed determines everything in the round."""
    with watch.logs():
        await fuzz_servers(watch, random.Random(f"servers {seed}"), inputs)
        await fuzz_answers(watch, random.Random(f"answers {seed}"), inputs // 4)
        await fuzz_requests(watch, random.Random(f"requests {seed}"), inputs // 4)
        await fuzz_calls(watch, random.Random(f"calls {seed}"), inputs // 4)
        watch.note_memory()


def main(
    minutes: Annotated[float, typer.Option(help="How long to go on; the round that runs is ended.")] = 60,
    seed: Annotated[int, typer.Option(help="The first round's seed; the next round has the next one.")] = 0,
    inputs: Annotated[int, typer.Option(help="Frames for the servers in a round.")] = 8_000,
    report: Annotated[Path | None, typer.Option(help="A file that gets the report after each round.")] = None,
) -> None:
    """Fuzz for a while and report. The exit code is 1 if anything was found."""
    watch, ends_s = Watch(), time.monotonic() + minutes * 60
    first = seed
    while seed == first or time.monotonic() < ends_s:
        asyncio.run(fuzz_round(watch, seed, inputs))
        seed += 1
        if report is not None:
            report.write_text(f"seeds {first} to {seed - 1}\n{watch.report()}\n")
    print(f"seeds {first} to {seed - 1}\n{watch.report()}")
    if watch.findings or watch.worst_ms > MAX_MS:
        raise typer.Exit(1)


if __name__ == "__main__":
    application = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    application.command()(main)
    with until_interrupted("Stopped: this round counts for nothing; the report has those before it."):
        application()
