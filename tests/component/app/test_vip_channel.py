"""Tests of the VIP channel, the port two below listenPort, which Java clients before 4.5 use."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from demo.ports import free_ports
from rocketmq_broker.app import Broker, StartError
from rocketmq_broker.protocol.bodies.group import ProducerConnection
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.group import GetProducerConnectionListRequestHeader
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2
from rocketmq_broker.remoting.client import RefusingHandler, RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection
from tests.e2e.clients import SEND

PULL = PullMessageRequestHeader(
    consumer_group="g", topic="orders", queue_id=0, queue_offset=0, max_msg_nums=1, sys_flag=4, commit_offset=0,
    suspend_timeout_millis=0, subscription="*", sub_version=0,
)  # fmt: skip


class Asked(RefusingHandler):
    """A handler that records the codes of the broker's requests."""

    def __init__(self) -> None:
        self.codes: asyncio.Queue[int] = asyncio.Queue()

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        for request in requests:
            self.codes.put_nowait(request.code)


async def start(broker: Broker, stack: AsyncExitStack) -> tuple[str, str]:
    """Starts the broker, and returns the addresses of listenPort and of the VIP channel."""
    await broker.start()
    stack.push_async_callback(broker.stop)
    identity = broker.identity
    return identity.address, f"{identity.host}:{identity.port - 2}"


async def test_a_message_sent_there_is_pulled_from_listen_port(
    new_broker: Callable[..., Broker], new_client: Callable[..., RemotingClient], stack: AsyncExitStack
) -> None:
    address, vip_address = await start(new_broker(), stack)
    asking = new_client()
    sent = await asking.invoke(vip_address, RequestCode.SEND_MESSAGE_V2, SEND, b"hello")
    assert sent.code == ResponseCode.SUCCESS
    assert (await asking.invoke(vip_address, RequestCode.PULL_MESSAGE, PULL)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    pulled = await asking.invoke(address, RequestCode.PULL_MESSAGE, PULL)
    assert (pulled.code, b"hello" in pulled.body) == (ResponseCode.SUCCESS, True)


async def test_a_producer_known_by_either_port_is_one_of_its_group_and_is_checked_back_there(
    new_broker: Callable[..., Broker], new_client: Callable[..., RemotingClient], stack: AsyncExitStack
) -> None:
    address, vip_address = await start(new_broker(transaction_time_out=0, transaction_check_interval=1), stack)
    asked = Asked()
    producer = new_client(asked)
    heartbeat = HeartbeatData(client_id="client@1", producer_data_set=[ProducerData(group_name="p")])
    await producer.invoke(vip_address, RequestCode.HEART_BEAT, None, heartbeat.encode())
    listed = await producer.invoke(
        address, RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader(producer_group="p")
    )
    assert [one.client_id for one in ProducerConnection.decode(listed.body).connection_set] == ["client@1"]
    half = SendMessageRequestHeaderV2(
        producer_group="p", topic="orders", default_topic="TBW102", default_topic_queue_nums=4, queue_id=0, sys_flag=4,
        born_timestamp=1, flag=0, properties="TRAN_MSG\1true\2PGROUP\1p\2UNIQ_KEY\1K\2",
    )  # fmt: skip
    assert (await producer.invoke(address, RequestCode.SEND_MESSAGE_V2, half, b"half")).code == ResponseCode.SUCCESS
    async with asyncio.timeout(30):
        assert await asked.codes.get() == RequestCode.CHECK_TRANSACTION_STATE


async def test_a_stopped_broker_leaves_both_ports(new_broker: Callable[..., Broker], stack: AsyncExitStack) -> None:
    broker = new_broker()
    await broker.start()
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
