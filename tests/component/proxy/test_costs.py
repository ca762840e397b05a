"""Who does not ask for grpcServerPort pays nothing for it: neither gRPC's library nor the proxy's room is imported."""

from __future__ import annotations

import subprocess
import sys

BROKER_RUNS = """
import asyncio, sys
from rocketmq_broker.testing import RocketMQ

async def main():
    async with RocketMQ({"grpcServerPort": sys.argv[1]}):
        print(*sorted(name for name in ("grpc", "google.protobuf", "rocketmq_broker.proxy") if name in sys.modules))

asyncio.run(main())
"""


def imported(grpc_port: int) -> list[str]:
    command = [sys.executable, "-c", BROKER_RUNS, str(grpc_port)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_a_broker_without_the_port_imports_nothing_of_it() -> None:
    assert imported(-1) == []
    assert imported(0) == ["google.protobuf", "grpc", "rocketmq_broker.proxy"]
