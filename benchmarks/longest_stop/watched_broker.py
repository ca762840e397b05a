"""A broker with its name server in one process, and a watcher on their event loop: the process that the benchmark measures.

It imports only `rocketmq_broker`, so that this file can also watch the broker of another checkout (named by PYTHONPATH). Its
arguments are properties of broker.conf, NAME=VALUE. It prints its addresses as one line of JSON, and then answers each line on
its standard input by one line: `begin` resets the watcher, `end` returns the longest stop since. It stops at the end of the
input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import resource
import sys
import time

from rocketmq_broker.app import Broker
from rocketmq_broker.config import load_settings

INTERVAL_S = 0.002


class LoopWatcher:
    """Schedules itself every 2 ms, and notes its longest delay, in which the loop served no client."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.longest_stop_s = 0.0
        self.longest_cpu_s = 0.0
        """The most CPU time of the loop's thread between two calls, which a loaded machine does not lengthen."""
        self._schedule()

    def begin(self) -> None:
        """Forgets earlier stops."""
        self.longest_stop_s = self.longest_cpu_s = 0.0

    def _schedule(self) -> None:
        self._due_s, self._cpu_s = time.perf_counter() + INTERVAL_S, time.thread_time()
        self._loop.call_later(INTERVAL_S, self._look)

    def _look(self) -> None:
        self.longest_stop_s = max(self.longest_stop_s, time.perf_counter() - self._due_s)
        self.longest_cpu_s = max(self.longest_cpu_s, time.thread_time() - self._cpu_s)
        self._schedule()


async def serve(properties: dict[str, str]) -> None:
    """Runs the broker until the input ends."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    broker = Broker(load_settings(None, properties).settings)
    await broker.start()
    gc.freeze()
    watcher = LoopWatcher(loop)
    _say({"broker": broker.identity.address, "name_server": broker.name_servers[0]})
    while command := (await commands.readline()).strip():
        if command == b"begin":
            watcher.begin()
        _say({"stop_s": watcher.longest_stop_s, "cpu_s": watcher.longest_cpu_s})
    await broker.stop()


def _say(fact: dict[str, object]) -> None:
    print(json.dumps(fact), flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")  # noqa: TID251 - an older broker has no rocketmq_broker.logs
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(dict(argument.split("=", 1) for argument in sys.argv[1:])))
