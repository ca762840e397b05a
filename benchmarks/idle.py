"""The cost of idle clients: memory and CPU time for idle connections and for producer groups.

`python -m benchmarks.idle`. Each group has its own connection and sends heartbeats.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from pathlib import Path
from typing import Annotated

import psutil
import typer

from benchmarks.side_by_side.brokers import OurBroker
from demo.processes import Processes
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.told_to_stop import until_interrupted

MEBIBYTE = 1024 * 1024
AT_ONCE = 200


def main(
    connections: Annotated[int, typer.Option(help="Idle connections.")] = 10_000,
    groups: Annotated[int, typer.Option(help="Producer groups.")] = 1_000,
    seconds: Annotated[float, typer.Option(help="How long the CPU time of an idle broker is measured.")] = 5,
) -> None:
    """Prints the memory and CPU time of the broker's process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="idle-") as folder, Processes(Path(folder) / "logs") as processes:
        broker = OurBroker(processes, Path(folder) / "broker", "SYNC_FLUSH")
        broker.start()
        asyncio.run(_measure(broker.address, broker.process, connections, groups, seconds))


async def _measure(address: str, process: psutil.Process, connections: int, groups: int, seconds: float) -> None:
    print(f"{_memory_mib(process):.1f} MiB with no client; idle, {await _idle_share(process, seconds):.1%} of a processor")
    before, began_s = _memory_mib(process), time.monotonic()
    writers = await _connect(address, connections)
    grown = _memory_mib(process) - before
    print(
        f"{connections:,} idle connections: {grown:.1f} MiB more, {grown * 1024 / connections:.1f} KiB each, "
        f"open after {time.monotonic() - began_s:.1f} s; {await _idle_share(process, seconds):.1%} of a processor"
    )
    before = _memory_mib(process)
    clients = [await _producer(address, number) for number in range(groups)]
    grown = _memory_mib(process) - before
    print(
        f"{groups:,} producer groups: {grown:.1f} MiB more, {grown * 1024 / groups:.1f} KiB each; "
        f"{await _idle_share(process, seconds):.1%} of a processor"
    )
    for client in clients:
        await client.close()
    for writer in writers:
        writer.close()


async def _connect(address: str, count: int) -> list[asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    writers: list[asyncio.StreamWriter] = []
    while len(writers) < count:
        opening = [asyncio.open_connection(host, int(port)) for _ in range(min(AT_ONCE, count - len(writers)))]
        writers += [writer for _, writer in await asyncio.gather(*opening)]
    return writers


async def _producer(address: str, number: int) -> RemotingClient:
    client = RemotingClient()
    heartbeat = HeartbeatData(client_id=f"client-{number}", producer_data_set=[ProducerData(group_name=f"group-{number}")])
    await client.invoke(address, RequestCode.HEART_BEAT, body=heartbeat.encode(), timeout_ms=5000)
    return client


async def _idle_share(process: psutil.Process, seconds: float) -> float:
    before = _cpu_s(process)
    await asyncio.sleep(seconds)
    return (_cpu_s(process) - before) / seconds


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _memory_mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / MEBIBYTE)


if __name__ == "__main__":
    with until_interrupted("Stopped: nothing was measured to the end."):
        typer.run(main)
