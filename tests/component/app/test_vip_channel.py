"""Tests of the VIP channel, the port two below listenPort, which Java clients before 4.5 use."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from demo.ports import free_ports
from rocketmq_broker.app import Broker, StartError
from rocketmq_broker.protocol.bodies.group import ProducerConnection
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.group import GetProducerConnectionListRequestHeader
from rocketmq_broker.remoting.client import RefusingHandler, RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection
from tests.e2e.clients import SEND
from tests.unit.server.conftest import PULL


class Asked(RefusingHandler):
    """A handler that records the codes of the broker's requests."""

    def __init__(self) -> None:
        self.codes: asyncio.Queue[int] = asyncio.Queue()

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        for request in requests:
            self.codes.put_nowait(request.code)


def addresses(broker: Broker) -> tuple[str, str]:
    """Returns the addresses of listenPort and of the VIP channel."""
    identity = broker.identity
    return identity.address, f"{identity.host}:{identity.port - 2}"


async def test_a_message_sent_there_is_pulled_from_listen_port(
    start_broker: Callable[..., Awaitable[Broker]], new_client: Callable[..., RemotingClient]
) -> None:
    address, vip_address = addresses(await start_broker())
    asking = new_client()
    sent = await asking.invoke(vip_address, RequestCode.SEND_MESSAGE_V2, SEND, b"hello")
    assert sent.code == ResponseCode.SUCCESS
    pull = msgspec.structs.replace(PULL, sys_flag=4, subscription="*")
    assert (await asking.invoke(vip_address, RequestCode.PULL_MESSAGE, pull)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    pulled = await asking.invoke(address, RequestCode.PULL_MESSAGE, pull)
    assert (pulled.code, b"hello" in pulled.body) == (ResponseCode.SUCCESS, True)


async def test_a_producer_known_by_either_port_is_one_of_its_group_and_is_checked_back_there(
    start_broker: Callable[..., Awaitable[Broker]], new_client: Callable[..., RemotingClient]
) -> None:
    address, vip_address = addresses(await start_broker(transaction_time_out=0, transaction_check_interval=1))
    asked = Asked()
    producer = new_client(asked)
    heartbeat = HeartbeatData(client_id="client@1", producer_data_set=[ProducerData(group_name="p")])
    await producer.invoke(vip_address, RequestCode.HEART_BEAT, None, heartbeat.encode())
    listed = await producer.invoke(
        address, RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader(producer_group="p")
    )
    assert [one.client_id for one in ProducerConnection.decode(listed.body).connection_set] == ["client@1"]
    half = msgspec.structs.replace(SEND, sys_flag=4, properties="TRAN_MSG\1true\2PGROUP\1p\2UNIQ_KEY\1K\2")
    assert (await producer.invoke(address, RequestCode.SEND_MESSAGE_V2, half, b"half")).code == ResponseCode.SUCCESS
    async with asyncio.timeout(30):
        assert await asked.codes.get() == RequestCode.CHECK_TRANSACTION_STATE


async def test_a_stopped_broker_leaves_both_ports(start_broker: Callable[..., Awaitable[Broker]]) -> None:
    broker = await start_broker()
    port = broker.identity.port
    await broker.stop()
    for left in (port, port - 2):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", left)), f"somebody still listens on {left}"


async def test_a_taken_port_is_a_start_error_that_says_which_it_is(new_broker: Callable[..., Broker]) -> None:
    (port,) = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port - 2))
        taken.listen()
        expected = rf"cannot listen on 127\.0\.0\.1:{port - 2} \(listenPort - 2, the VIP channel\): the port is in use"
        with pytest.raises(StartError, match=expected):
            await new_broker(listen_port=port).start()
