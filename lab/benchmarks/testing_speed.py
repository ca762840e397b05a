"""Measures the speed of the fixture `rocketmq`: `python -m lab.benchmarks.testing_speed`.

Prints medians of several rounds: the time to the first stored message, the time for fifteen minutes of check-backs,
the time for an isolated test, and the memory that one `RocketMQ` object adds to the process.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.stop_signals import until_interrupted
from rocketmq_broker.testing import RocketMQ, SyncRocketMQ

ROUNDS: Final = 15
ISOLATED_TESTS: Final = 200
CPU_S: Final[list[float]] = []
"""The CPU time of each round in seconds. On a busy machine it is more reliable than wall time."""


class Undecided:
    """A transaction listener that never decides a transaction."""

    def __init__(self) -> None:
        self.checks = 0

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        """Returns UNKNOWN."""
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Counts the check-back and returns UNKNOWN."""
        self.checks += 1
        return LocalTransactionState.UNKNOWN


def message() -> Message:
    """Returns a message about an order."""
    return Message.of("orders", b"order 1 is paid", keys=["order-1"])


async def first_message() -> float:
    """Returns the seconds from the broker's start to the first stored message."""
    began_s = time.perf_counter()
    async with RocketMQ() as rocketmq:
        producer = await rocketmq.producer("p")
        await producer.send(message())
        return time.perf_counter() - began_s


async def fifteen_minutes() -> float:
    """Returns the seconds that it takes to simulate 15 minutes of check-backs for one transaction."""
    async with RocketMQ() as rocketmq:
        listener = Undecided()
        producer = await rocketmq.transaction_producer("p", listener)
        await producer.create_topic("orders")
        await producer.send_message_in_transaction(message())
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        await rocketmq.advance(minutes=15)
        took_s, CPU_S[:] = time.perf_counter() - began_s, [*CPU_S, time.process_time() - began_cpu_s]
        assert listener.checks == 15
        return took_s


async def isolated_test() -> float:
    """Returns the seconds that it takes to start a broker, resolve a lost COMMIT by a check-back, and stop the broker."""
    began_s = time.perf_counter()
    async with RocketMQ() as rocketmq:
        producer = await rocketmq.transaction_producer("p", Undecided())
        await producer.send_message_in_transaction(message())
        await rocketmq.advance(seconds=10)
        assert len(await rocketmq.pending("order-1")) == 1
    return time.perf_counter() - began_s


def synchronous_test() -> float:
    """Runs the test of `isolated_test` with the synchronous API. Returns its duration in seconds."""
    began_s = time.perf_counter()
    with SyncRocketMQ() as rocketmq:
        producer = rocketmq.transaction_producer("p", Undecided())
        producer.send_message_in_transaction(message())
        rocketmq.advance(seconds=10)
        assert len(rocketmq.pending("order-1")) == 1
    return time.perf_counter() - began_s


def of_rounds(measure: Callable[[], Coroutine[Any, Any, float]], rounds: int = ROUNDS) -> str:
    """Returns the median and the range of all rounds in milliseconds. Each round has a new event loop, like each test."""
    return shown([asyncio.run(measure()) for _ in range(rounds)])


def shown(taken_s: list[float]) -> str:
    """Returns the median and the range of the times in milliseconds, as text."""
    return f"{statistics.median(taken_s) * 1000:6.1f} ms  ({min(taken_s) * 1000:.1f} to {max(taken_s) * 1000:.1f})"


async def memory_mib() -> float:
    """Returns the memory in MiB that each broker adds to the process.

    Ten brokers are started, each with a producer and a message.
    """
    gc.collect()
    before = resident_mib()
    running: list[RocketMQ] = []
    for _ in range(10):
        rocketmq = RocketMQ(seed=1, time=running[0].time if running else None)
        await rocketmq.start()
        producer = await rocketmq.producer("p")
        await producer.send(message())
        running.append(rocketmq)
    added = resident_mib() - before
    for rocketmq in reversed(running):
        await rocketmq.stop()
    return added / 10


def resident_mib() -> float:
    """Returns the process's current memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def main() -> None:
    """Prints the table of all measurements."""
    print(f"process with the broker imported         {resident_mib():6.1f} MiB")
    print(f"start to first message, first in process {shown([asyncio.run(first_message())])}")
    print(f"start to first message                   {of_rounds(first_message)}")
    print(f"15 minutes of check-backs                {of_rounds(fifteen_minutes)}")
    print(f"                        of the processor {shown(CPU_S)}")
    print(f"an isolated async test                   {of_rounds(isolated_test, ISOLATED_TESTS)}")
    print(f"an isolated synchronous test             {shown([synchronous_test() for _ in range(ISOLATED_TESTS)])}")
    print(f"each broker adds                         {asyncio.run(memory_mib()):6.1f} MiB")
    print(f"process at the end                       {resident_mib():6.1f} MiB")


if __name__ == "__main__":
    with until_interrupted("Stopped: nothing was measured to the end."):
        main()
