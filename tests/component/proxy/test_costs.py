"""Tests of a broker without grpcServerPort.

The broker imports no module of the proxy, starts no thread for the proxy, and does not open the proxy's port.
"""

import json
import subprocess
import sys
from typing import Any

BROKER_RUNS = """
import asyncio, json, os, sys
from rocketmq_broker.testing import RocketMQ

def listening_ports():
    names = {os.path.realpath(f"/proc/self/fd/{number}").rpartition("/")[2] for number in os.listdir("/proc/self/fd")}
    lines = [line.split() for line in open("/proc/self/net/tcp")][1:]
    return sorted(int(line[1].partition(":")[2], 16) for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in names)

async def main():
    async with RocketMQ({"grpcServerPort": sys.argv[1]}) as rocketmq:
        name_server, broker = (int(one.rpartition(":")[2]) for one in (rocketmq.namesrv_addr, rocketmq.broker_addr))
        facts = {
            "imported": [name for name in ("google.protobuf", "grpc", "h2", "rocketmq_broker.proxy") if name in sys.modules],
            "threads": len(os.listdir("/proc/self/task")),
            "ports": listening_ports(),
            "of the other protocol": sorted([name_server, broker, broker - 2]),
        }
    print(json.dumps(facts))

asyncio.run(main())
"""


def facts_of_a_broker(grpc_port: int) -> dict[str, Any]:
    command = [sys.executable, "-c", BROKER_RUNS, str(grpc_port)]
    facts = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert isinstance(facts, dict)
    return facts


def test_a_broker_without_the_port_has_nothing_of_it() -> None:
    without, with_port = facts_of_a_broker(-1), facts_of_a_broker(0)
    assert (without["imported"], without["threads"], without["ports"]) == ([], 1, without["of the other protocol"])
    assert with_port["imported"] == ["google.protobuf", "h2", "rocketmq_broker.proxy"]
    assert (with_port["threads"], len(with_port["ports"])) == (1, len(without["ports"]) + 1)
