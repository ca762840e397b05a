"""Runs a broker for one test run, with a store in memory: `python -m rocketmq_broker --ephemeral`."""

import asyncio
import json
import os
from collections.abc import Mapping

from rocketmq_broker.remoting.event_loop import event_of_stop_signals
from rocketmq_broker.testing.control import Control
from rocketmq_broker.testing.http import ControlServer
from rocketmq_broker.testing.rocketmq import RocketMQ
from rocketmq_broker.testing.virtual_time import VirtualTime
from rocketmq_broker.world import current_world


def run_ephemeral(settings: Mapping[str, str], *, is_controlled: bool) -> None:
    """Runs the broker until SIGTERM or Ctrl-C. When the broker is ready, prints a line of JSON with the addresses.

    `is_controlled` enables commands over HTTP on loopback. Raises StartError, ConfigError.
    """
    time = VirtualTime(current_world().wall_ms(), is_flowing=True)
    with asyncio.Runner(loop_factory=time.new_loop) as runner:
        runner.run(_serve(RocketMQ(settings, time=time), is_controlled))


async def _serve(rocketmq: RocketMQ, is_controlled: bool) -> None:
    stopping = event_of_stop_signals()
    async with rocketmq:
        server = ControlServer(Control(rocketmq))
        where = await server.start() if is_controlled else None
        addresses = {
            "namesrvAddr": rocketmq.namesrv_addr,
            "brokerAddr": rocketmq.broker_addr,
            "grpcEndpoint": rocketmq.grpc_endpoint,
            "control": where,
            "pid": os.getpid(),
        }
        print(json.dumps(addresses), flush=True)
        await stopping.wait()
        await server.stop()
