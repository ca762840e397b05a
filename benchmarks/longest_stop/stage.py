"""The stage of a row: a watched broker, new for each row, and connections to it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.longest_stop.peer import PATIENCE_S, Peer
from rocketmq_broker.protocol.codes import RequestCode

WATCHED: Final = Path(__file__).parent / "watched_broker.py"
_CALM_S: Final = 0.05
_MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """The effect of a row on the broker."""

    stop_s: float
    """The longest absence of the event loop."""
    cpu_s: float
    """CPU time of the loop's thread in one turn, at most."""
    grown_mib: float
    """The greatest growth of the process's memory."""


class Stage:
    """The broker of a row, and its connections."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, addresses: Mapping[str, str]) -> None:
        self.folder = folder
        """The store's root."""
        self.address = addresses["broker"]
        self.name_server = addresses["name_server"]
        self._process = process
        self._peers: list[Peer] = []
        self._memory_before_mib = 0.0

    async def connect(self, address: str | None = None) -> Peer:
        """Opens a connection to the broker, or to another address."""
        peer = await Peer.connect(address or self.address)
        self._peers.append(peer)
        return peer

    async def begin(self) -> None:
        """Ends the preparation, and starts the measurement."""
        await self.settle()
        await self._ask_watcher("begin")
        self._forget_most_memory()
        self._memory_before_mib = self._memory_mib("VmRSS")

    async def watch(self) -> None:
        """Resets the watcher."""
        await self._ask_watcher("begin")

    async def watched_cpu_s(self) -> float:
        """Returns the CPU time of the longest turn of the event loop since `watch`."""
        return float((await self._ask_watcher("end"))["cpu_s"])

    async def settle(self) -> None:
        """Returns when the broker and the name server answer quickly again."""
        for address in (self.address, self.name_server):
            peer = await Peer.connect(address)
            calm = 0
            while calm < 3:
                await asyncio.sleep(0.2)
                began_s = time.monotonic()
                await peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
                calm = calm + 1 if time.monotonic() - began_s < _CALM_S else 0
            peer.hang_up()

    async def end(self) -> Measured:
        """Returns the measurement since `begin`."""
        await self.settle()
        seen = await self._ask_watcher("end")
        grown_mib = self._memory_mib("VmHWM") - self._memory_before_mib
        for peer in self._peers:
            peer.hang_up()
        return Measured(seen["stop_s"], seen["cpu_s"], grown_mib)

    async def _ask_watcher(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n".encode())
        return await told(self._process)

    def _forget_most_memory(self) -> None:
        """Lets the kernel measure the process's peak memory again."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def _memory_mib(self, name: str) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")) / _MEBIBYTE


async def told(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """Returns the next line of the watched broker. Raises RuntimeError if there is none, TimeoutError."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        line = await process.stdout.readline()
    if not line:
        raise RuntimeError("the watched broker ended; its log says why")
    return dict(json.loads(line))


@asynccontextmanager
async def staged(checkout: Path, folder: Path, settings: Mapping[str, str]) -> AsyncIterator[Stage]:
    """Yields a stage with a broker of that checkout and its store in the folder. Stops it in the end, by force if needed."""
    properties = {"listenPort": "0", "namesrvListenPort": "0", "storePathRootDir": str(folder), **settings}
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(WATCHED), *(f"{name}={value}" for name, value in properties.items())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(checkout / "broker")},
        )
    try:
        yield Stage(process, folder, await told(process))
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(20):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
