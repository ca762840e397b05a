"""What a client of RocketMQ 5 does wrong on our broker, it does wrong on Apache's proxy, too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.ports import free_ports
from tests.apache.cluster import apache_rocketmq
from tests.conformance.grpc.clients import BUILD_SECONDS, CLIENTS, FIFO_PUSH, RUN_SECONDS, Client, prepare, results_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(BUILD_SECONDS + RUN_SECONDS + 60)]
VERSION = "5.3.3"
FAULTY = sorted((client for client in CLIENTS if client.name.startswith(("node", "python"))), key=str)
"""Their programs expect the attempts that they see here: Node's sees no second one, Python's does not count it.

Node's comes first and warms the proxy up: Python's gives up where a proxy does not answer within 10 s.
"""


@dataclass(frozen=True, slots=True)
class ApachesProxy:
    """Apache's proxy and its broker at work."""

    endpoint: str
    home: Path


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApachesProxy]:
    home = tmp_path_factory.mktemp("apache")
    port, proxy_port = free_ports(2)
    with apache_rocketmq(home, version=VERSION, settings={"BROKER_PORT": str(port), "PROXY_PORT": str(proxy_port)}):
        asyncio.run(prepare(f"127.0.0.1:{port}", makes_dead_letter_topics=True))
        yield ApachesProxy(f"127.0.0.1:{proxy_port}", home)


@pytest.mark.parametrize("client", FAULTY, ids=str)
def test_fifo_messages_are_retried_as_wrongly_on_apache_s_proxy(proxy: ApachesProxy, client: Client) -> None:
    if client.missing():
        pytest.skip(f"the client needs {' and '.join(client.missing())}: see tests/conformance/grpc/README.md")
    lines, errors = results_of(client, proxy.endpoint, proxy.home / client.name, [FIFO_PUSH])
    assert lines == {FIFO_PUSH: "ok"}, errors[-5000:]
