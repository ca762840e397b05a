"""Sixty clients send most of a frame of 16 MB each, and wait."""

import asyncio
import contextlib
import struct

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH

WHAT = "60 frames of 16 MB, each without its end"
PEERS = 60


async def run(stage: Stage) -> None:
    """Measures the memory of half frames."""
    peers = [await stage.connect() for _ in range(PEERS)]
    await stage.begin()
    frame = struct.pack(">I", MAX_FRAME_LENGTH - 4) + bytes(MAX_FRAME_LENGTH - 1024)
    for peer in peers:
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(5):
                await peer.write(frame)
    await asyncio.sleep(1)
