"""Starts and stops a real Apache RocketMQ for tests, with the script `peer` in this folder."""

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from demo.ports import free_ports
from tutorials.race.brokers.apache import until_registered

PEER = Path(__file__).with_name("peer")
START_SECONDS = 600
"""The first start downloads the jars."""
STOP_SECONDS = 120
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""The JVMs are over before a thorough compilation would pay."""


@contextmanager
def apache_rocketmq(
    home: Path,
    *,
    version: str = "4.9.7",
    settings: Mapping[str, str] | None = None,
    is_store_needed: bool = False,
    accepts_plain: bool = True,
) -> Iterator[str]:
    """Runs a name server and a registered broker with their data in `home`. Yields the name server's address.

    `settings` are the environment variables that `peer` lists. Both processes are killed at the end. If the store is needed
    afterwards, the broker is stopped properly, which takes ten seconds. If the name server accepts only TLS, `accepts_plain` is
    False, and the registration is not awaited.
    """
    namesrv_port, broker_port = free_ports(2)
    environment = {
        **os.environ,
        "NAMESRV_PORT": str(namesrv_port),
        "BROKER_PORT": str(broker_port),
        "HEAP": "512m",
        **(settings or {}),
    }
    environment["JAVA_OPTIONS"] = f"{SHORT_LIVED} {environment.get('JAVA_OPTIONS', '')}"
    try:
        subprocess.run([PEER, "start", home, version], env=environment, check=True, timeout=START_SECONDS)
        namesrv_addr = f"127.0.0.1:{environment['NAMESRV_PORT']}"
        if accepts_plain:
            with ThreadPoolExecutor(1) as thread:  # the test may have an event loop of its own
                thread.submit(asyncio.run, until_registered(namesrv_addr)).result()
        yield namesrv_addr
    finally:
        subprocess.run([PEER, "stop" if is_store_needed else "drop", home], check=True, timeout=STOP_SECONDS)
