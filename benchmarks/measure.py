"""One load on one broker, and one recovery."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.brokers import BROKERS, BrokerUnderTest, Side
from benchmarks.plan import Plan, Run
from benchmarks.probe import fill
from demo.processes import Processes, ProcessFailed

BENCH = Path(__file__).resolve().parent.parent / "tests" / "conformance" / "java" / "bench"
_DRIVER_TIMEOUT_S = 600
_SAMPLE_S = 0.2
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run gave."""

    sent_per_s: float
    """Transactions that the broker took, or, consuming, messages that arrived."""
    committed_per_s: float
    """Of these, the ones whose message became visible."""
    p50_ms: float
    p99_ms: float
    failures: int
    """Sends that failed; consuming, also what was lost or came twice."""
    cpu_s_per_1000: float
    """CPU seconds of the broker's process and its children for 1000 committed transactions, warm-up included."""
    peak_mib: float
    """Resident memory of the same; mapped files count where they are resident."""
    start_s: float
    """From the process's birth to the first message accepted."""


@dataclass(slots=True)
class Usage:
    """What a process and its children have used."""

    cpu_s: float = 0
    peak_mib: float = 0


def measure(plan: Plan, run: Run, home: Path) -> Sample:
    """Starts the broker with an empty store, puts the load on it and stops it. Raises ProcessFailed."""
    with _broker(home, run.side, run.load.flush) as (processes, broker):
        start_s = broker.start()
        with _usage(broker.process) as usage:
            printed = drive(processes, _arguments(plan, run, broker), run.load.header)
    return _consumed(printed, usage, start_s) if run.load.threads is None else _sent(printed, usage, start_s)


def measure_recovery(plan: Plan, side: Side, home: Path) -> float:
    """Seconds from the start after a kill -9 to the first message accepted. Raises ProcessFailed."""
    with _broker(home, side, "ASYNC_FLUSH") as (_, broker):
        broker.start()
        asyncio.run(fill(broker.address, plan.recovered, plan.body_size))
        broker.kill()
        return broker.start()


@contextmanager
def _broker(home: Path, side: Side, flush: str) -> Iterator[tuple[Processes, BrokerUnderTest]]:
    try:
        with Processes(home / "logs") as processes:
            broker = BROKERS[side](processes, home / "broker", flush)
            try:
                yield processes, broker
            finally:
                broker.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _arguments(plan: Plan, run: Run, broker: BrokerUnderTest) -> list[str]:
    if run.load.threads is None:
        return ["consume", broker.namesrv_addr, str(plan.consumed), str(plan.body_size)]
    return [broker.namesrv_addr, str(run.load.threads), str(plan.body_size), str(plan.seconds)]


def drive(processes: Processes, arguments: list[str], header: str) -> dict[str, float]:
    """What the load driver printed. Raises ProcessFailed."""
    driver = processes.add("driver", [str(BENCH), *arguments], environment={"ROCKETMQ_SERIALIZE_TYPE": header})
    driver.spawn()
    driver.wait(_DRIVER_TIMEOUT_S)
    for line in driver.output().splitlines():
        if line.startswith("{"):
            printed: dict[str, float] = json.loads(line)
            return printed
    raise ProcessFailed(f"the load driver printed no result:\n{driver.output()}")


def _sent(printed: dict[str, float], usage: Usage, start_s: float) -> Sample:
    # The driver times what it sends after its warm-up, and counts what is visible over all of it.
    committed_share = printed["committed_total"] / printed["sent_total"]
    return Sample(
        sent_per_s=printed["tx_per_s"],
        committed_per_s=printed["tx_per_s"] * committed_share,
        p50_ms=printed["p50_ms"],
        p99_ms=printed["p99_ms"],
        failures=int(printed["failures"]),
        cpu_s_per_1000=usage.cpu_s / printed["committed_total"] * 1000,
        peak_mib=usage.peak_mib,
        start_s=start_s,
    )


def _consumed(printed: dict[str, float], usage: Usage, start_s: float) -> Sample:
    return Sample(
        sent_per_s=printed["n"] / printed["send_s"],
        committed_per_s=printed["msg_per_s"],
        p50_ms=printed["p50_ms"],
        p99_ms=printed["p99_ms"],
        failures=int(printed["failures"] + printed["lost"] + printed["duplicates"]),
        cpu_s_per_1000=usage.cpu_s / printed["n"] * 1000,
        peak_mib=usage.peak_mib,
        start_s=start_s,
    )


@contextmanager
def _usage(process: psutil.Process) -> Iterator[Usage]:
    usage, is_over = Usage(), threading.Event()
    before = _cpu_s(process)

    def sample() -> None:
        while not is_over.wait(_SAMPLE_S):
            with contextlib.suppress(psutil.NoSuchProcess):
                usage.peak_mib = max(usage.peak_mib, _memory_mib(process))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield usage
        usage.cpu_s = _cpu_s(process) - before
    finally:
        is_over.set()
        sampler.join()


def _family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _cpu_s(process: psutil.Process) -> float:
    return float(sum(times.user + times.system for times in (member.cpu_times() for member in _family(process))))


def _memory_mib(process: psutil.Process) -> float:
    return float(sum(member.memory_info().rss for member in _family(process)) / _MEBIBYTE)
