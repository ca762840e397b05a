"""Measures the broker's CPU time for one transaction, without sockets: `python -m lab.benchmarks.hot_path`.

Several transactions are in flight. For each of them, one read contains the decision on the previous message and the next half
message, as when Apache's client sends both over one connection. The time to encode the frames is not counted.
"""

import asyncio
import cProfile
import gc
import os
import pstats
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lab.benchmarks.broker_parts import BrokerParts
from lab.benchmarks.recorded_frames import RecordedTransaction
from rocketmq_broker.protocol.codes import SerializeType
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.send import SendMessageResponseHeader
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.store import FlushDiskType

TOPIC = "hot-path"
PROFILED_FUNCTIONS = 50


@dataclass(frozen=True, slots=True)
class Load:
    """The load to send to the broker."""

    flush: FlushDiskType
    serialize_type: SerializeType
    body_size: int
    in_flight: int
    transactions: int


@dataclass(slots=True)
class Spent:
    """The CPU time of the broker's process in seconds, in total and in the kernel."""

    total_s: float = 0
    system_s: float = 0


async def measure(home: Path, load: Load, profile: cProfile.Profile | None = None) -> Spent:
    """Runs the load's transactions through a new broker, and returns the CPU time spent on them."""
    recorded = RecordedTransaction.load(load.serialize_type, TOPIC)
    broker, spent, body = BrokerParts(home, load.flush), Spent(), os.urandom(load.body_size)
    await broker.start()
    gc.freeze()
    decisions = [b""] * load.in_flight
    for first in range(0, load.transactions, load.in_flight):
        halves = [recorded.half_frame(number, body) for number in range(first, first + load.in_flight)]
        data = b"".join(part for pair in zip(decisions, halves, strict=True) for part in pair)
        answered = await _counted(broker, data, load.in_flight, spent, profile)
        answers = FrameDecoder().feed(answered)
        decisions = [recorded.commit_frame(answer.opaque, answer.decode_header(SendMessageResponseHeader)) for answer in answers]
    await _counted(broker, b"".join(decisions), 0, spent, None)
    await broker.stop()
    committed = broker.committed(TOPIC)
    if committed != load.transactions:
        raise AssertionError(f"only {committed} of {load.transactions} messages are visible")
    return spent


async def _counted(broker: BrokerParts, data: bytes, answers: int, spent: Spent, profile: cProfile.Profile | None) -> bytes:
    if profile is not None:
        profile.enable()
    began_s, began = time.process_time(), os.times()
    answered = await broker.exchange(data, answers)
    spent.total_s += time.process_time() - began_s
    spent.system_s += os.times().system - began.system
    if profile is not None:
        profile.disable()
    return answered


def main(
    flush: Annotated[FlushDiskType, typer.Option(help="When the broker answers.")] = FlushDiskType.ASYNC_FLUSH,
    binary: Annotated[bool, typer.Option("--binary", help="Binary headers instead of JSON.")] = False,
    size: Annotated[int, typer.Option(help="Size of a message's body in bytes.")] = 1024,
    in_flight: Annotated[int, typer.Option(help="Transactions in one read.")] = 32,
    transactions: Annotated[int, typer.Option(help="Number of transactions, rounded up to full reads.")] = 20_000,
    rounds: Annotated[int, typer.Option(help="How often.")] = 5,
    profile: Annotated[bool, typer.Option("--profile", help="Also print a profile.")] = False,
) -> None:
    """Prints the CPU microseconds that the broker spends on a half message and its COMMIT."""
    serialize_type = SerializeType.ROCKETMQ if binary else SerializeType.JSON
    load = Load(flush, serialize_type, size, in_flight, -(-transactions // in_flight) * in_flight)
    results = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="hot-path-") as home:
            spent = asyncio.run(measure(Path(home), load))
        results.append(spent.total_s / load.transactions * 1e6)
    print(f"{flush.value} {serialize_type.name}, {in_flight} in flight, {size} bytes, Python {sys.version.split()[0]}")
    print(
        f"{statistics.median(results):.1f} µs CPU per transaction (min {min(results):.1f}, max {max(results):.1f}), "
        f"{spent.system_s / load.transactions * 1e6:.1f} µs of them in the kernel"
    )
    if profile:
        profiler = cProfile.Profile()
        with tempfile.TemporaryDirectory(prefix="hot-path-") as home:
            asyncio.run(measure(Path(home), load, profiler))
        pstats.Stats(profiler).sort_stats("tottime").print_stats(PROFILED_FUNCTIONS)


if __name__ == "__main__":
    with until_interrupted("Stopped: nothing was measured to the end."):
        typer.run(main)
