"""Tests that a client of RocketMQ 5 has the same faults with Apache's proxy as with this broker."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.ports import free_ports
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.name_server import GetRouteInfoRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from tests.foreign.apache.cluster import apache_rocketmq
from tests.foreign.clients.grpc.clients import BUILD_SECONDS, CLIENTS, FIFO_PUSH, PLAIN, RUN_SECONDS, Client, prepare, results_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(BUILD_SECONDS + RUN_SECONDS + 60)]
VERSION = "5.3.3"
FAULTY = {
    client: [PLAIN] if client.name == "python-5.0.9" else [FIFO_PUSH]
    for client in sorted(CLIENTS, key=str)
    if client.name.startswith(("node", "python"))
}
"""The cases in which their programs expect what they see here, which is not what they should see.

Of a FIFO message Node's sees no second attempt, and Python's does not count it. Of a received message Python's 5.0.9 sees
neither keys nor properties; its push consumers get nothing at all here, where metrics are off. Node's comes first and warms
the proxy up: Python's gives up where a proxy does not answer within 10 s.
"""
STARTS = 3
NOT_STARTED = ("failed to receive initial settings", "Startup the rocketmq client failed")
"""What the programs say of a client that has given up its start. Nothing was sent then."""


@dataclass(frozen=True, slots=True)
class ApachesProxy:
    """Apache's proxy and its broker, while they are running."""

    endpoint: str
    home: Path


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApachesProxy]:
    home = tmp_path_factory.mktemp("apache")
    port, proxy_port = free_ports(2)
    settings = {"BROKER_PORT": str(port), "PROXY_PORT": str(proxy_port)}
    with apache_rocketmq(home, version=VERSION, settings=settings) as name_server:
        asyncio.run(prepare(f"127.0.0.1:{port}", on_apache=True))
        asyncio.run(routes_are_known(name_server))
        yield ApachesProxy(f"127.0.0.1:{proxy_port}", home)


async def routes_are_known(name_server: str) -> None:
    """Waits until the broker has registered the topics with the name server.

    Otherwise the proxy would cache for 20 s that a topic is missing.
    """
    topics = [client.prefix + case for client, cases in FAULTY.items() for case in cases]
    topics += [f"%DLQ%group-{client.prefix}{FIFO_PUSH}" for client, cases in FAULTY.items() if FIFO_PUSH in cases]
    remoting = RemotingClient()
    async with asyncio.timeout(60):
        while topics:
            header = GetRouteInfoRequestHeader(topics[-1])
            answer = await remoting.invoke(name_server, RequestCode.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=10_000)
            if answer.code == ResponseCode.SUCCESS:
                topics.pop()
            else:
                await asyncio.sleep(0.2)
    await remoting.close()


@pytest.mark.parametrize("client", FAULTY, ids=str)
@pytest.mark.release
def test_a_client_with_a_fault_has_it_on_apache_s_proxy(proxy: ApachesProxy, client: Client) -> None:
    if client.missing():
        pytest.skip(f"the client needs {' and '.join(client.missing())}: see tests/foreign/clients/grpc/README.md")
    for start in range(STARTS):
        lines, errors = results_of(client, proxy.endpoint, proxy.home / f"{client.name}-{start}", FAULTY[client])
        if not any(said in line for line in lines.values() for said in NOT_STARTED):
            break
    assert lines == dict.fromkeys(FAULTY[client], "ok"), errors[-5000:]
